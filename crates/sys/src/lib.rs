//! Access to the kernel: the only crate with `unsafe`.
//!
//! Thin, total wrappers around system calls that std does not have (Landlock, seccomp, namespaces, mount API, pidfd,
//! signalfd, pty), around libc's time zone, and the launcher, whose forked side must be raw calls only; and the
//! formats every crate shares: paths of any bytes in JSON, points in time, hexadecimal digits, random ids. No policy, no text for people beyond the
//! names of its own steps, and no `cfg(target_os)` above this crate except in `nono-sandbox`'s backend directory.

#[cfg(target_os = "linux")]
pub mod extents;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(target_os = "linux")]
pub mod lease;
#[cfg(target_os = "linux")]
pub mod notify;
#[cfg(target_os = "linux")]
pub mod other_process;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod socket_diag;
#[cfg(target_os = "linux")]
pub mod terminal;
#[cfg(target_os = "linux")]
pub mod wait;

pub mod errno;
pub mod fs;
pub mod hex;
pub mod path_serde;
#[cfg(all(target_os = "linux", feature = "failpoints"))]
pub mod power;
pub mod random;
pub mod time;
