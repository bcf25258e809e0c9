//! Backends, one directory per operating system; the only place above `nono-sys` that depends on which one it is.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(not(target_os = "linux"))]
compile_error!(
    "nono is not supported on this system yet: it enforces with Linux's Landlock, seccomp and namespaces"
);
