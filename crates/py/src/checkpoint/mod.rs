//! Checkpoints: `CheckpointManager` and its values, over `nono::checkpoints`.
//!
//! Each call takes the library's manager for itself, without the interpreter; another thread that wants it meanwhile
//! waits the same way, and can be cancelled while it does.

mod args;
pub(crate) mod call;
mod error;
pub(crate) mod hooks;
mod host;
mod manager;
pub(crate) mod shared_manager;
pub(crate) mod turns;
mod values;
mod work;

pub(crate) use error::failed;

/// A text in a `repr`.
pub(crate) fn text(text: &str) -> String {
    format!("'{}'", text.escape_debug())
}
