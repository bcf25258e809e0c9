//! The audit log from outside: what holds for every log, and what is left of one that was tampered with, cut off or flooded.

mod common;
mod corpus;
mod flood;
mod full_disk;
mod killed;
mod laws;
mod signing;
mod tamper;
