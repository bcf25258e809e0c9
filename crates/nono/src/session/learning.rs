//! The part of a session that has to do with learning: what the command may do while it is watched.

use std::path::PathBuf;

use nono_policy::{
    AccessMode, GrantKind, GrantRequest, NetworkPolicy, ProfileRef, ResolvedPolicy, RunRequest,
};
use nono_supervisor::recorded::Recorded;

use super::{Host, SessionError, resolve};

/// Record what the command does, to propose a profile from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learning {
    /// Open everything that can be opened without a bypass, so that it runs as it would freely.
    pub allow_all: bool,
    /// The command's output goes where its errors go: this process's own is for the proposal.
    pub output_aside: bool,
}

impl Learning {
    /// What is asked for then: with everything open that no protection closes, if that is wanted.
    #[must_use]
    pub fn applied(self, mut request: RunRequest) -> RunRequest {
        if self.allow_all {
            let path = PathBuf::from("/");
            let (access, kind) = (AccessMode::ReadWrite, GrantKind::Directory);
            request.grants.push(GrantRequest { path, access, kind });
            request.network = Some(NetworkPolicy::Allowed);
        }
        request
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The policy of the profile alone: what a run has that is started with it and no flags.
    pub base: ResolvedPolicy,
    /// What a proposed profile builds on.
    pub extends: Vec<String>,
    pub recorded: Recorded,
}

/// What is known before the command runs.
#[derive(Debug)]
pub(super) struct Watched {
    base: ResolvedPolicy,
    extends: Vec<String>,
    /// Whose writable paths are snapshotted, and whose temporary folder is used: not those of a run that may do all.
    pub(super) tracked: ResolvedPolicy,
}

impl Watched {
    pub(super) fn new(
        request: &RunRequest,
        inside: &Host,
        learning: Learning,
    ) -> Result<Watched, SessionError> {
        let allow_cwd = request.allow_cwd || learning.allow_all;
        Ok(Watched {
            base: resolve(&base(request), inside)?.0,
            extends: extends(request),
            tracked: resolve(&RunRequest { allow_cwd, ..request.clone() }, inside)?.0,
        })
    }

    pub(super) fn learned(self, recorded: Recorded) -> Learned {
        Learned { base: self.base, extends: self.extends, recorded }
    }
}

/// A request for what profiles alone give. A profile that was given as a file has no name to build on.
pub(super) fn base(request: &RunRequest) -> RunRequest {
    RunRequest {
        profile: request.profile.clone().filter(|profile| matches!(profile, ProfileRef::Name(_))),
        extends: request.extends.clone(),
        program: request.program.clone(),
        ..RunRequest::default()
    }
}

pub(super) fn extends(request: &RunRequest) -> Vec<String> {
    let named = match &request.profile {
        Some(ProfileRef::Name(name)) => name.clone(),
        Some(ProfileRef::File(_)) | None => "default".to_owned(),
    };
    std::iter::once(named).chain(request.extends.iter().cloned()).collect()
}
