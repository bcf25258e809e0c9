//! `nono_py._nono_py`: the native half of the Python package, over crate `nono`.
//!
//! Nothing is decided here. Arguments become values of the library, its results become Python objects, its errors
//! exceptions (`error`); long work runs in another thread, while the caller's waits without the interpreter (`long`).
//! What is more comfortable in Python (context managers, async variants, the audit module, and the classes of results,
//! which are records over the JSON of the library: `plain::Record`) is in `python/nono_py`.

#![allow(clippy::needless_pass_by_value, reason = "arguments arrive as Python hands them over")]
#![allow(
    clippy::wrong_self_convention,
    reason = "Python's objects are borrowed by their methods, small ones too"
)]

mod audit;
mod blocking;
mod capability;
mod checkpoint;
mod error;
mod exec;
mod fork;
mod history;
mod list_args;
mod panic_guard;
mod paths;
mod plain;
mod policy;
mod proxy;
mod session;
mod snapshot;

use pyo3::prelude::*;

/// The native half of `nono_py`.
// Not tested on an interpreter without the GIL, so Python enables it again, with a warning.
#[pymodule(gil_used = true)]
mod _nono_py {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::audit::{
        _audit_link, _build_proof, _check_proof, _check_session_id, _digest_text, _ledger_record,
        _session_digest, LedgerCheck, LogCheck, VerificationError,
    };
    #[pymodule_export]
    use crate::blocking::Cancel;
    #[pymodule_export]
    use crate::capability::{
        access::AccessMode,
        grant::{CapabilitySource, FsCapability},
        query::QueryContext,
        set::CapabilitySet,
        state::SandboxState,
        support::{SupportInfo, apply, is_supported, support_info},
    };
    #[pymodule_export]
    use crate::checkpoint::{
        call::CheckpointCall,
        hooks::{hooks_install, hooks_remove, hooks_status, risk_of},
        shared_manager::CheckpointManager,
        turns::{AgentTurns, FileVersions},
    };
    #[pymodule_export]
    use crate::exec::{ExecResult, sandboxed_exec};
    #[cfg(debug_assertions)]
    #[pymodule_export]
    use crate::panic_guard::_panic;
    #[pymodule_export]
    use crate::policy::{
        apply_unlink_overrides,
        document::{Policy, ResolvedPolicy},
        embedded_policy_json, load_embedded_policy, load_policy, validate_deny_overlaps,
    };
    #[pymodule_export]
    use crate::proxy::{
        config::{ExternalProxyConfig, InjectMode, ProxyConfig, RouteConfig},
        handle::ProxyHandle,
        start_proxy,
    };
    #[pymodule_export]
    use crate::session::{
        _resolve, _run,
        approve::ApprovalReply,
        control::{RunningSession, running_sessions, stop_session},
        host::{_serve_network, _serve_webhook},
        sessions::{RollbackSession, cleanup_sessions, list_sessions, open_session, verify_sessions},
        undo_points::undo_points,
    };
    #[pymodule_export]
    use crate::snapshot::{
        exclusion::ExclusionConfig,
        manager::SnapshotManager,
        manifest::SnapshotManifest,
        metadata::SessionMetadata,
        values::{Change, ContentHash, FileState},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::error::register(module)?;
        crate::fork::fill_caches(module)
    }
}
