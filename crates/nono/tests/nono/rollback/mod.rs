//! Sessions as a run leaves them, looked at and undone: the library side of `nono rollback`.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends it")]

mod catalogue;
mod conflicts;
mod late;
mod order;
mod prune;
mod recover;
mod repositories;
mod restore;
mod settings;
mod verify;
mod world;
