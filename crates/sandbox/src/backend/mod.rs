//! Backends, one directory per operating system; the only place above `nono-sys` that depends on which one it is.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{
    Blueprint, Command, KernelRule, Layers, Mediated, Mediation, MemoryHold, MountStep, Namespaces,
    NotifySupport, PROXY_PORT, PlanError, Prepared, ProxyPlace, SessionPaths, Support, apply, compile,
    is_supported, probe_plan, support, try_notify,
};

#[cfg(not(target_os = "linux"))]
compile_error!(
    "nono is not supported on this system yet: it enforces with Linux's Landlock, seccomp and namespaces"
);
