//! The review on a grid of cells: how it looks at several sizes, and what keys come to.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod fake;
mod layout;
mod marking;
mod moving;
