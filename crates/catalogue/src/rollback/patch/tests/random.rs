//! Patches between random trees; the seed is printed on failure.

use super::oracle::{GIT, GIT_BACK, PATCH, leads};
use crate::rollback::changes::testing::{TestNode, TestTree};

/// Small pseudo-random generator; the same seed gives the same trees.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    pub(super) fn text(&mut self) -> Vec<u8> {
        let ends: [&[u8]; 4] = [b"\n", b"\n", b"\n", b"\r\n"];
        let end = self.pick(&ends);
        let mut text: Vec<u8> =
            (0..self.below(40)).flat_map(|_| [self.line(), end.to_vec()].concat()).collect();
        if self.one_in(4) {
            text.extend(self.line());
        }
        text
    }

    fn line(&mut self) -> Vec<u8> {
        let words: [&[u8]; 10] =
            [b"let", b"x", b" = ", b"value", b"", b"{", b"}", b"\t", b"\xc3\xa9", b"-- a"];
        (0..self.below(4)).flat_map(|_| self.pick(&words).to_vec()).collect()
    }

    /// Remove, add and change lines.
    pub(super) fn edit(&mut self, text: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> =
            text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        for _ in 0..=self.below(4) {
            let at = self.below(lines.len() + 1);
            match self.below(3) {
                0 if at < lines.len() => drop(lines.remove(at)),
                1 if at < lines.len() => {
                    lines[at] = [b"edited ".to_vec(), self.line(), b"\n".to_vec()].concat();
                }
                _ => lines.insert(at, [self.line(), b"\n".to_vec()].concat()),
            }
        }
        lines.concat()
    }

    fn binary(&mut self) -> Vec<u8> {
        (0..self.below(300)).map(|_| self.below(256).to_le_bytes()[0]).chain([0]).collect()
    }

    fn node(&mut self, text_only: bool) -> TestNode {
        match self.below(if text_only { 6 } else { 9 }) {
            6 | 7 => TestNode::File(self.binary(), self.one_in(4)),
            8 => TestNode::Link([b"to ".to_vec(), self.line(), b"x".to_vec()].concat()),
            _ => TestNode::File(self.text(), self.one_in(4)),
        }
    }

    fn name(&mut self) -> Vec<u8> {
        let dirs: [&[u8]; 5] = [b"", b"", b"src/", b"src/deep/", b"docs/"];
        let names: [&[u8]; 10] =
            [b"a", b"b", b"c.txt", b"d e", b"f\ng", b"\xff", b"\"q\"", b"main.rs", b"src", b"x\\y"];
        [self.pick(&dirs), self.pick(&names)].concat()
    }

    fn tree(&mut self, text_only: bool) -> TestTree {
        let mut tree = TestTree::new();
        for _ in 0..3 + self.below(10) {
            let (name, node) = (self.name(), self.node(text_only));
            put(&mut tree, name, node);
        }
        tree
    }

    fn next(&mut self, old: &TestTree, text_only: bool) -> TestTree {
        let mut new = old.clone();
        for _ in 0..=self.below(6) {
            let known: Vec<Vec<u8>> = new.keys().cloned().collect();
            if known.is_empty() || self.one_in(4) {
                let (name, node) = (self.name(), self.node(text_only));
                put(&mut new, name, node);
                continue;
            }
            let name = known[self.below(known.len())].clone();
            let node = new.remove(&name).unwrap();
            let changed = match (self.below(5), node) {
                (0, _) => continue,
                (1, TestNode::File(content, executable)) => TestNode::File(content, !executable),
                (2, node) => {
                    put(&mut new, self.name(), node);
                    continue;
                }
                (3, TestNode::File(content, executable)) => {
                    let content = self.edit(&content);
                    put(&mut new, self.name(), TestNode::File(content, executable));
                    continue;
                }
                (4, _) if self.one_in(2) => self.node(text_only),
                (_, TestNode::File(content, executable)) => TestNode::File(self.edit(&content), executable),
                (_, node) => node,
            };
            new.insert(name, changed);
        }
        new
    }
}

fn within(inner: &[u8], outer: &[u8]) -> bool {
    inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/')
}

/// Whether a directory replaced a file or the reverse, which `patch` cannot do.
fn change_places(old: &TestTree, new: &TestTree) -> bool {
    let above = |a: &TestTree, b: &TestTree| a.keys().any(|outer| b.keys().any(|inner| within(inner, outer)));
    above(old, new) || above(new, old)
}

/// Insert a node, and remove everything above or below it.
fn put(tree: &mut TestTree, name: Vec<u8>, node: TestNode) {
    tree.retain(|known, _| !within(known, &name) && !within(&name, known));
    tree.insert(name, node);
}

#[test]
fn git_makes_the_other_tree_of_it() {
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let old = dice.tree(false);
        let new = dice.next(&old, false);
        if old != new {
            println!("seed {seed}");
            leads(&old, &new, &[GIT, GIT_BACK]);
        }
    }
}

#[test]
fn patch_makes_the_other_tree_of_it() {
    for seed in 1000..1100 {
        let mut dice = Dice::new(seed);
        let old = dice.tree(true);
        let new = dice.next(&old, true);
        if old != new {
            println!("seed {seed}");
            let by: &[_] = if change_places(&old, &new) { &[GIT] } else { &[GIT, PATCH] };
            leads(&old, &new, by);
        }
    }
}
