//! `nono checkpoints` for real: the binary as an ordinary user, real trees, and programs that are not ours to say what a
//! tree is.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod edits;
mod hostile;
mod inside;
mod project;
mod record;
mod repositories;
mod round;
mod sweeps;

use crate::rollback::kit;
use crate::world::said;
use crate::world::settled;
