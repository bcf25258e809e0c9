//! `nono learn`: permissions of a command while it is recorded, and the data for the proposed profile.

use std::path::PathBuf;

use nono_policy::{
    AccessMode, GrantKind, GrantRequest, MergedProfile, NetworkPolicy, ProfileRef, ResolvedPolicy, RunRequest,
};
use nono_supervisor::recorded::Recorded;

use super::error::SessionError;
use super::request::Host;
use super::resolve::{profile, resolve};

/// Settings for recording what a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learning {
    /// Grant everything that needs no bypass, so that the command runs as it would without a sandbox.
    pub allow_all: bool,
    /// Send the command's stdout to stderr: stdout is for the proposal.
    pub output_aside: bool,
}

impl Learning {
    /// The request with everything granted that is not protected, if `allow_all` is set.
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

#[derive(Clone, Debug)]
pub struct Learned {
    /// Policy of the profile alone, without flags.
    pub base: ResolvedPolicy,
    /// Profiles that the proposed profile extends.
    pub extends: Vec<String>,
    pub recorded: Recorded,
}

/// Policies resolved before the command runs.
#[derive(Debug)]
pub(super) struct Watched {
    base: ResolvedPolicy,
    extends: Vec<String>,
    /// Policy that decides snapshots and the temporary folder, in place of one that allows everything.
    pub(super) tracked: ResolvedPolicy,
}

impl Watched {
    pub(super) fn new(
        request: &RunRequest,
        merged: &MergedProfile,
        inside: &Host,
        learning: Learning,
    ) -> Result<Watched, SessionError> {
        let allow_cwd = request.allow_cwd || learning.allow_all;
        let base = base(request);
        Ok(Watched {
            base: resolve(&base, &profile(&base, inside)?, inside)?,
            extends: extends(request),
            tracked: resolve(&RunRequest { allow_cwd, ..request.clone() }, merged, inside)?,
        })
    }

    pub(super) fn learned(self, recorded: Recorded) -> Learned {
        Learned { base: self.base, extends: self.extends, recorded }
    }
}

/// A request for what the profiles alone grant. A profile given as a file has no name to extend, so it is left out.
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
