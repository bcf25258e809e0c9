//! The library as a program uses it. `request` is a program of its own: its process stands for the init of a sandbox.

mod apply;
mod exec;
mod import;
mod rollback;
mod webhook_confine;
