//! Translation of a resolved policy to what the kernel enforces.
//!
//! [`compile`] turns a [`ResolvedPolicy`](nono_policy::resolved::ResolvedPolicy) and the facts about this kernel into a
//! [`Blueprint`]: a value that can be printed and tested, and that says everything the child's process will do to
//! itself. Where the kernel cannot enforce what the policy says, the answer is a [`Refusal`], never a weaker sandbox.
//! Everything specific to an operating system is in `backend/`.

mod backend;
mod guarantees;
mod own_process;
mod refusal;
mod strategy;

pub use backend::{
    Blueprint, Command, KernelRule, Layers, MODES, Mediated, Mediation, MemoryHold, MountStep, Namespaces,
    NotifySupport, PROXY_PORT, PlanError, Prepared, ProxyPlace, REMOVALS, SessionPaths, Support, apply,
    compile, is_supported, probe_plan, support, try_notify,
};
pub use guarantees::{Guarantee, GuaranteeState, Unanswered, guarantees};
pub use own_process::{ApplyError, Sandbox};
pub use refusal::{NoProcessLimit, Refusal};
pub use strategy::ExecStrategy;
