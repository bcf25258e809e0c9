//! The library as a program uses it.

mod apply;
mod exec;
mod import;
mod request;
mod rollback;
mod webhook_confine;
