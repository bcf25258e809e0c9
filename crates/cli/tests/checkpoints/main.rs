//! `nono checkpoints` for real: the binary as an ordinary user, real trees, and programs that are not ours to say what a
//! tree is.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod edits;
mod hostile;
mod inside;
#[allow(dead_code, reason = "shared with the tests of rollback")]
#[path = "../rollback/kit.rs"]
mod kit;
#[allow(dead_code, reason = "shared with the tests of the engine")]
#[path = "../../../snapshot/tests/common/oracle.rs"]
mod oracle;
mod project;
mod record;
mod repositories;
mod round;
#[path = "../world/said.rs"]
mod said;
#[path = "../world/settled.rs"]
mod settled;
mod sweeps;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../world/mod.rs"]
mod world;
