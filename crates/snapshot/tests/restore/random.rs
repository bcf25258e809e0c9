//! Random trees, random damage: every state can be reached from every other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use nono_snapshot::diff::diff;
use rustix::fs::{CWD, Mode};

use crate::kit::{World, set_mtime, set_xattr};

/// A small generator, so that a seed is all it takes to see a failure again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn path(&mut self, world: &World) -> PathBuf {
        let mut path = world.root();
        for _ in 0..=self.roll(3) {
            path.push(["a", "b", "c", "d"][usize::try_from(self.roll(4)).unwrap()]);
        }
        path
    }

    /// One change that an agent might make; impossible ones are skipped.
    fn change(&mut self, world: &World) {
        let path = self.path(world);
        let _ = match self.roll(12) {
            0 => fs::remove_file(&path),
            1 => fs::remove_dir_all(&path),
            // Opening a FIFO would wait for another process.
            2..=4 if fs::metadata(&path).is_ok_and(|meta| !meta.is_file()) => return,
            2..=4 => fs::write(&path, ["x", "y", "longer content"][usize::try_from(self.roll(3)).unwrap()]),
            5 | 6 => fs::create_dir_all(&path),
            7 => symlink(["a", "../b", "nowhere"][usize::try_from(self.roll(3)).unwrap()], &path),
            8 => fs::hard_link(self.path(world), &path),
            9 => fs::rename(self.path(world), &path),
            10 => rustix::fs::mkfifoat(CWD, &path, Mode::from_raw_mode(0o644)).map_err(Into::into),
            _ => {
                self.attribute(world, &path);
                Ok(())
            }
        };
    }

    fn attribute(&mut self, world: &World, path: &PathBuf) {
        let Ok(meta) = fs::symlink_metadata(path) else { return };
        let mode = [0o755, 0o700, 0o4755, 0o555, 0o640][usize::try_from(self.roll(5)).unwrap()];
        if !meta.is_symlink() {
            world.mode(path.strip_prefix(world.root()).unwrap().to_str().unwrap(), mode);
        }
        set_mtime(path, i64::try_from(self.roll(3)).unwrap(), 7);
        if meta.is_file() || meta.is_dir() {
            set_xattr(path, "user.x", b"value");
        }
    }
}

#[test]
fn from_every_state_to_every_other() {
    for seed in 1..40 {
        let world = World::new();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut states = Vec::new();
        for _ in 0..3 {
            for _ in 0..40 {
                dice.change(&world);
            }
            states.push(world.snap());
        }
        for target in [0, 2, 1, 0] {
            let current = world.snap();
            let outcome = world.check(&states[target]);
            let expected = diff(&current, &states[target], &world.objects).unwrap();
            assert_eq!(outcome.changes, expected, "seed {seed}");
            assert!(world.check(&states[target]).changes.is_empty());
        }
    }
}
