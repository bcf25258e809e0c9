//! Checkpoints: `CheckpointManager` and its values, over `nono::checkpoints`.
//!
//! Each call takes the library's manager for itself, without the interpreter; another thread that wants it meanwhile
//! waits the same way, and can be cancelled while it does.

mod args;
mod call;
mod changes;
mod error;
mod hooks;
mod host;
mod json;
mod manager;
mod reports;
mod restores;
mod shared_manager;
mod turns;
mod values;
mod work;

pub(crate) use error::failed;
use pyo3::prelude::*;

/// A text in a `repr`.
fn text(text: &str) -> String {
    format!("'{}'", text.escape_debug())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    values::register(module)?;
    changes::register(module)?;
    restores::register(module)?;
    reports::register(module)?;
    call::register(module)?;
    turns::register(module)?;
    hooks::register(module)?;
    manager::register(module)
}
