//! Merkle tree over all events: an odd node at the end of a level moves up unchanged.

use crate::hash::{Digest, MERKLE_DOMAIN};

pub fn node(left: &Digest, right: &Digest) -> Digest {
    Digest::of(MERKLE_DOMAIN, &[left.as_bytes(), right.as_bytes()])
}

/// Tree that grows leaf by leaf and keeps only the roots of its complete subtrees: one for each bit of the number of
/// leaves.
#[derive(Clone, Debug, Default)]
pub struct Merkle {
    parts: Vec<Digest>,
    leaves: u64,
}

impl Merkle {
    pub fn push(&mut self, leaf: Digest) {
        let mut grown = leaf;
        for _ in 0..self.leaves.trailing_ones() {
            if let Some(left) = self.parts.pop() {
                grown = node(&left, &grown);
            }
        }
        self.parts.push(grown);
        self.leaves += 1;
    }

    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// Root of the tree; `None` for an empty one.
    pub fn root(&self) -> Option<Digest> {
        let mut parts = self.parts.iter().rev();
        let last = *parts.next()?;
        Some(parts.fold(last, |right, left| node(left, &right)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation: level by level, as in the description of the format.
    fn by_levels(leaves: &[Digest]) -> Option<Digest> {
        let mut level = leaves.to_vec();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| if let [left, right] = pair { node(left, right) } else { pair[0] })
                .collect();
        }
        level.first().copied()
    }

    #[test]
    fn the_growing_tree_is_the_tree_by_levels() {
        let mut tree = Merkle::default();
        let mut leaves = Vec::new();
        for number in 0..300_u32 {
            assert_eq!(tree.root(), by_levels(&leaves), "{number}");
            let leaf = Digest::of(b"leaf", &[&number.to_le_bytes()]);
            tree.push(leaf);
            leaves.push(leaf);
        }
        assert_eq!(tree.leaves(), 300);
    }

    #[test]
    fn the_golden_root() {
        let mut tree = Merkle::default();
        (1..=5).for_each(|byte| tree.push(Digest::from_bytes([byte; 32])));
        let golden = "87f9319b8dbb3d3fd55d419aabf3c218aafd2dfd82d5e30fb22e8e89c10c0160";
        assert_eq!(tree.root().unwrap().hex(), golden);
    }
}
