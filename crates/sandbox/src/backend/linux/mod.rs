//! Linux: Landlock, seccomp and namespaces.

mod aliases;
mod apply;
mod blueprint;
mod filter;
mod memory;
mod mounts;
mod plan;
mod sockets;
mod support;

pub use apply::apply;
pub use blueprint::{
    Blueprint, KernelRule, Layers, Mediation, MountStep, PROXY_PORT, ProxyPlace, SessionPaths, compile,
};
pub use filter::{MODES, Mediated, REMOVALS};
pub use memory::MemoryHold;
pub use plan::{Command, PlanError, Prepared, probe_plan};
pub use support::{Namespaces, NotifySupport, Support, is_supported, support, try_notify};
