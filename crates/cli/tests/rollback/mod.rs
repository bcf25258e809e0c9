//! Runs that are tracked, and what is done with them later: the real binary as an ordinary user, real trees, and
//! programs that are not ours to say what a tree is.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod attack;
mod both;
mod bounds;
mod budget;
mod edits;
mod ends;
mod hostile;
mod killed;
pub(crate) mod kit;
mod live;
mod settles;
mod shortage;
mod stress;
mod trees;
mod uncopied;
mod unnoticed;
mod watching;

use crate::world;
use crate::world::said;
use crate::world::settled;
