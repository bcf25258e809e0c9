//! nono: run a command, or confine this process, so that the kernel lets it reach only what was granted.
//!
//! ```no_run
//! use nono::{AccessMode, CapabilitySet, Sandbox};
//!
//! let caps = CapabilitySet::builder()
//!     .allow_path("/usr", AccessMode::Read)?
//!     .allow_path("/home/me/project", AccessMode::ReadWrite)?
//!     .allow_network(false)
//!     .build()?;
//! Sandbox::apply(&caps)?; // irreversible, for this process and everything it starts
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`session::run`] is the other way in: the whole of a run, from a request to a report, as one page of stages.
//! [`exec::run`] runs one command under a set of grants and gives back what it said.
//! [`rollback`] is what a run with snapshots leaves behind: sessions that can be looked at, restored, undone and checked.
//! [`undo`] is the way back in a directory, through sessions and checkpoints alike.
//! [`control`] is what runs now: which sessions there are, and their end. [`request`] is how a program inside one asks for
//! more. [`learn`] proposes a profile from what a command did. [`network`] is the only way out where hosts are filtered.
//! [`directory`] is what one directory has of all this: protected, running, undoable.
//! [`project_profile`] is the profile that a project carries, and whether a person agreed to it.
//! [`agents`] is which program is which agent, and how it is started.
//! [`audit`] is what sessions left in the log: found, checked, given away, removed.
//! [`snapshot`] is the engine below it, which keeps the state of folders and puts it back.
//! Nothing here prints, prompts, exits, or reads the environment or the home folder: the edge hands these in.

pub mod agents;
pub mod approval;
pub mod audit;
mod beneath;
pub mod checkpoints;
mod config_file;
pub mod control;
pub mod diagnostic;
pub mod directory;
pub mod exec;
pub mod file_log;
mod glob;
pub mod helper;
pub mod hooks;
pub mod interrupt;
pub mod learn;
pub mod links;
pub mod network;
mod pick;
pub mod program;
pub mod project_profile;
pub mod proxy;
mod replace;
pub mod request;
pub mod rollback;
mod sandbox;
mod saved;
pub mod session;
pub mod shapes;
pub mod state_dir;
mod streams;
pub mod undo;

pub use diagnostic::{Denial, DiagnosticFormatter, Findings, Limit, Seen};
/// Policy documents: groups of paths and network rules, as other programs write them.
pub use nono_policy::document;
pub use nono_policy::hosts::HostRule;
pub use nono_policy::links::{Departure, TypedLink};
pub use nono_policy::profile::{DiffChange, HookInstall, HookSection, ProfilePath};
pub use nono_policy::{
    AccessMode, AddressClass, CapabilityError, CapabilitySet, CapabilitySetBuilder, CapabilitySource,
    ClosedBy, ClosedHow, ClosedPath, DeniedReason, DiffLine, EnvRequest, EnvironmentRules, Facts,
    FsCapability, GrantKind, GrantRequest, HostContext, HostFacts, HostGrant, Limits, MergedProfile,
    NetworkPolicy, NetworkQuery, NetworkReason, Note, PathKind, PlatformRuleError, PolicyData, PolicyError,
    Profile, ProfileError, ProfileInfo, ProfileOrigin, ProfileRef, ProfileStore, ProjectEntry,
    ProjectOverlay, QueryResult, ResolvedPolicy, Rule, RuleAccess, RunRequest, SandboxState, SetAnswer,
    SetQuery, StateError, Suggestion, Typed, diff as profile_diff, is_within, query_network, query_path,
    query_path_on, schema as profile_schema, template as profile_template,
};
pub use nono_sandbox::{
    ExecStrategy, Guarantee, Held, Namespaces, Refusal, Support as SandboxSupport, guarantees,
};
/// Snapshots of folders, comparison, restore: the engine, as a library of its own.
pub use nono_snapshot as snapshot;
pub use nono_supervisor::channel::{Counts as RequestCounts, SessionInfo, Status as SessionStatus};
pub use nono_supervisor::report::{Attempt, MediationReport, Refused};
pub use nono_supervisor::{Canary, LimitHit, MemoryMethod, is_contained, recorded, report, stage, urls};
pub use nono_sys::wait::{Ended, signal_name};
pub use sandbox::{ApplyError, Sandbox};
