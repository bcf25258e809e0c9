//! Sessions as a run leaves them, looked at and undone: the library side of `nono rollback`.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends it")]

#[path = "rollback/catalogue.rs"]
mod catalogue;
#[path = "rollback/conflicts.rs"]
mod conflicts;
#[path = "rollback/late.rs"]
mod late;
#[path = "rollback/order.rs"]
mod order;
#[path = "rollback/prune.rs"]
mod prune;
#[path = "rollback/recover.rs"]
mod recover;
#[path = "rollback/repositories.rs"]
mod repositories;
#[path = "rollback/restore.rs"]
mod restore;
#[path = "rollback/settings.rs"]
mod settings;
#[path = "rollback/verify.rs"]
mod verify;
#[path = "rollback/world.rs"]
mod world;
