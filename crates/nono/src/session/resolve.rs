//! Resolution of a request: its profile, and the policy that follows.

use nono_policy::{
    HostFacts, MergedProfile, PolicyData, ProfileError, ProfileRef, ProfileStore, ResolvedPolicy, RunRequest,
};

use super::error::SessionError;
use super::request::Host;

/// Resolve the policy without running anything, as `--dry-run` and `why` show it. Changes nothing on disk.
pub fn resolve(
    request: &RunRequest,
    profile: &MergedProfile,
    host: &Host,
) -> Result<ResolvedPolicy, SessionError> {
    Ok(nono_policy::resolve(request, &host.context, profile, PolicyData::embedded(), &HostFacts)?)
}

/// The request's profile, merged with everything it extends.
pub fn profile(request: &RunRequest, host: &Host) -> Result<MergedProfile, ProfileError> {
    let store = ProfileStore::new(host.profile_dir.clone());
    let wanted = request.profile.clone().unwrap_or_else(|| ProfileRef::Name("default".to_owned()));
    let mut profile = store.resolve(&wanted, &request.extends)?;
    for project in &request.projects {
        profile.lay_over(&project.profile);
    }
    Ok(profile)
}
