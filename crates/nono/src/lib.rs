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
//! [`session::run`] performs a whole supervised run, from a request to a report.
//! [`exec::run`] runs one command under a set of grants and returns its output.
//! [`rollback`] lists, shows, restores, undoes and verifies the sessions of runs with snapshots.
//! [`undo`] finds the points to go back to in a directory, of sessions and checkpoints alike.
//! [`control`] lists, inspects and stops running sessions. [`request`] lets a program inside one ask for more.
//! [`learn`] proposes a profile from a recorded run. [`network`] filters the network by host.
//! [`directory`] reports what is protected, running and undoable in one directory.
//! [`project_profile`] reads the profile of a project, and keeps the user's agreement to it.
//! [`agents`] knows which program is which agent, and how it is started.
//! [`audit`] finds, verifies, exports and removes audit logs.
//! [`snapshot`] is the engine below, which stores the state of folders and restores it.
//! Nothing here prints, prompts, exits, or reads the environment or the home folder: the caller passes these in.

pub mod approval;
pub mod control;
pub mod diagnostic;
pub mod directory;
pub mod exec;
pub mod interrupt;
pub mod learn;
pub mod links;
pub mod project_profile;
pub mod session;
mod streams;

/// Sessions with snapshots: found, shown, compared, restored, undone, verified and removed.
pub mod rollback {
    pub use nono_catalogue::rollback::{
        AllVerified, Baseline, Body, Catalogue, ChangeCounts, ChangeSet, Changed, Checks, Conflicts, Done,
        FileDiff, Hunk, Item, ItemKind, Later, LineKind, Merge, PatchLine, Plan, Pruned, RestoreChoice,
        Retention, RollbackError, RollbackReport, RollbackRequest, RollbackSession, RollbackSettings,
        Segment, SessionEntry, SessionVerified, SessionsForgot, SnapshotInfo, Status, ToUndo, TrackedSession,
        autorun, catalogue, changes, error, forget, json, live_lock, patch, prune, repair, restore, seals,
        settings, tracking, verify,
    };
}

/// Hooks of coding agents, and what an agent is told of the sandbox around it.
pub mod hooks {
    pub use nono_agents::hooks::*;

    pub use crate::diagnostic::agent as denial;
}

pub use diagnostic::{Denial, DenialDetails, DiagnosticFormatter, Findings, Limit};
pub use nono_agents::known as agents;
pub use nono_catalogue::config_file::SettingProblem;
pub use nono_catalogue::{audit, checkpoints, file_log, json, undo};
pub use nono_egress::{helper, network, proxy};
/// Policy documents: groups of paths and network rules, as other programs write them.
pub use nono_policy::document;
pub use nono_policy::error::grant_flag;
pub use nono_policy::host_rule::HostRule;
pub use nono_policy::links::{EscapingLink, TypedLink};
pub use nono_policy::profile::{DiffChange, HookInstall, HookSection, ProfilePath};
pub use nono_policy::{
    AccessMode, AccessRule, AddressClass, CapabilityError, CapabilitySet, CapabilitySetBuilder,
    CapabilitySource, ClosedBy, ClosedHow, ClosedPath, DeniedReason, DiffLine, EnvRequest, EnvironmentRules,
    ExtendedBy, Facts, FsCapability, GrantKind, GrantRequest, HostContext, HostFacts, HostGrant, Limits,
    MergedProfile, NetworkPolicy, NetworkQuery, NetworkReason, PathKind, PlatformRuleError, PolicyData,
    PolicyError, PolicyNote, Profile, ProfileError, ProfileInfo, ProfileOrigin, ProfileRef, ProfileStore,
    ProjectEntry, ProjectOverlay, QueryResult, ResolvedPolicy, RuleAccess, RunRequest, SandboxState,
    SetAnswer, SetQuery, StateError, Suggestion, Typed, UnknownKey, diff as profile_diff, is_within,
    query_network, query_path, query_path_on, schema as profile_schema, state_dir,
    template as profile_template,
};
pub use nono_sandbox::{
    ApplyError, ExecStrategy, Guarantee, GuaranteeState, Namespaces, NoProcessLimit, Refusal, Sandbox,
    Support as SandboxSupport, guarantees,
};
/// Snapshots of folders, comparison, restore: the engine, as a library of its own.
pub use nono_snapshot as snapshot;
pub use nono_supervisor::channel::{
    ChannelCounts as RequestCounts, RunningStatus as SessionStatus, SessionInfo,
};
pub use nono_supervisor::report::{DeniedAttempt, MediationReport, Refused};
pub use nono_supervisor::{
    Canary, LimitHit, MemoryMethod, ServiceError, is_contained, program, recorded, report, request,
    terminal_lease, urls,
};
pub use nono_sys::fs::temporary_beside;
pub use nono_sys::launch::NOT_RUN;
pub use nono_sys::wait::{Ended, signal_name};
