//! Coding agents: which there are, their hooks, and their settings.
//!
//! [`known`] knows which program is which agent, how it is started, and what the user agreed to grant it. [`hooks`]
//! answers what agents report around their tools, and writes itself into their settings. [`saved`] lets an agent save
//! settings from inside the sandbox without deciding what it runs outside.

pub mod hooks;
pub mod known;
mod replace_file;
pub mod saved;
