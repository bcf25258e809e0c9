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
mod kit;
mod live;
#[allow(dead_code, reason = "shared with the tests of the engine")]
#[path = "../../../snapshot/tests/common/oracle.rs"]
mod oracle;
#[path = "../world/said.rs"]
mod said;
#[path = "../world/settled.rs"]
mod settled;
mod settles;
mod shortage;
mod stress;
mod trees;
mod uncopied;
mod unnoticed;
mod watching;
#[path = "../world/mod.rs"]
mod world;
