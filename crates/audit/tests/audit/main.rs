//! The audit log from outside: what holds for every log, and what is left of one that was tampered with, cut off or flooded.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod corpus;
mod flood;
mod full_disk;
mod killed;
mod laws;
mod signing;
mod tamper;
