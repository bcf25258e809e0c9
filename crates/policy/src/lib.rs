//! Pure policy: capabilities, profiles, groups, resolution and queries.
//!
//! A [`RunRequest`](request::RunRequest) and the facts of the host go in, a
//! [`ResolvedPolicy`](resolved::ResolvedPolicy) comes out. Nothing here enforces anything.

pub mod access;
pub mod resolved;
