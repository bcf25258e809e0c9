//! Reasons why a policy cannot be enforced here.

use std::path::PathBuf;

use thiserror::Error;

use crate::strategy::ExecStrategy;

/// Refusal of a run: the kernel cannot enforce what the policy says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("this system is not supported yet: nono enforces with Linux's Landlock")]
    UnsupportedSystem,
    #[error("the kernel has no Landlock ({reason})")]
    NoLandlock { reason: String },
    #[error("the kernel's Landlock ABI {abi} is too old: {what} needs ABI {needed}")]
    LandlockTooOld { abi: u32, needed: u32, what: &'static str },
    #[error("cannot close {path} inside {grant}: that needs a mount namespace, and {reason}", path = .path.display(), grant = .grant.display())]
    CannotMask { path: PathBuf, grant: PathBuf, reason: String },
    #[error("cannot keep {path} closed: it does not exist yet, and the command could create it", path = .path.display())]
    CannotHold { path: PathBuf },
    #[error("cannot grant {path}: the sandbox replaces {own} with its own", path = .path.display(), own = .own.display())]
    CannotGive { path: PathBuf, own: PathBuf },
    #[error("cannot limit the number of processes: {why}")]
    CannotLimitProcesses { why: NoProcessLimit },
    #[error("cannot open single unix sockets: that needs a mount namespace, and {reason}")]
    CannotOpenSocket { reason: String },
    #[error("{what} needs trapped system calls, which are not available here: {reason}")]
    CannotMediate { what: &'static str, reason: String },
    #[error("filtering the network by host needs a supervisor, and {strategy} has none")]
    CannotFilter { strategy: ExecStrategy },
    #[error("this process has {threads} threads, and this kernel can confine only one of them")]
    Threads { threads: usize },
    #[error("cannot open {path} for a Landlock rule: {error}", path = .path.display())]
    Rule { path: PathBuf, error: String },
    #[error("{path} was replaced by a link while it was being granted", path = .path.display())]
    Changed { path: PathBuf },
    #[error("could not {step}: {error}")]
    Kernel { step: &'static str, error: String },
}

/// Reason why the number of processes cannot be limited.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoProcessLimit {
    #[error("that needs a user namespace, and the outer nono sandbox allows none")]
    Nested,
    #[error("that needs a user namespace, and {reason}")]
    NoNamespaces { reason: String },
    #[error("the kernel does not count root's processes")]
    Root,
}

impl NoProcessLimit {
    fn hint(&self) -> &'static str {
        match self {
            NoProcessLimit::Nested => "leave --max-procs out, or give it to the outer nono",
            NoProcessLimit::NoNamespaces { .. } => "leave --max-procs out",
            NoProcessLimit::Root => "run as an ordinary user",
        }
    }
}

impl Refusal {
    /// Hint about what the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Refusal::NoLandlock { .. } => {
                "boot a kernel of 6.2 or later with CONFIG_SECURITY_LANDLOCK and `landlock` in its lsm= list"
                    .to_owned()
            }
            Refusal::LandlockTooOld { .. } => {
                "run `nono setup --check-only` to see what each ABI gives".to_owned()
            }
            Refusal::CannotMask { path, grant, .. } => format!(
                "grant only the parts of {} that the command needs, without {}",
                grant.display(),
                path.display()
            ),
            Refusal::CannotHold { path } => {
                format!("create {} first, or grant less than its folder", path.display())
            }
            Refusal::CannotGive { .. } => "use another folder".to_owned(),
            Refusal::CannotLimitProcesses { why } => why.hint().to_owned(),
            Refusal::CannotOpenSocket { .. } => "leave --allow-unix-socket out".to_owned(),
            Refusal::CannotMediate { .. } => {
                "`nono setup --check-only` shows what the kernel has; --accept-weaker goes on without it, except for asking"
                    .to_owned()
            }
            Refusal::CannotFilter { .. } => "use `nono run`, or leave the hosts out".to_owned(),
            Refusal::Threads { .. } => {
                "call it before other threads start, or start a sandboxed process instead".to_owned()
            }
            Refusal::Changed { .. } => "check which other program writes there, then run it again".to_owned(),
            Refusal::UnsupportedSystem | Refusal::Rule { .. } | Refusal::Kernel { .. } => return None,
        })
    }
}
