//! The engine from outside, in one program, so that it is linked once: the laws, ignore rules against git, failures and loss
//! of power. All of it runs side by side in one process, so none may change what belongs to the process; what has to,
//! does it in a child. `restore` and `store_faults` are programs of their own and say why.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step of a test ends it")]

mod common;
#[cfg(feature = "failpoints")]
mod faults;
mod ignore_oracle;
mod laws;
#[cfg(feature = "failpoints")]
mod power;
