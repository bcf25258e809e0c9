//! Resolution of a request on a host to the policy that is enforced.
//!
//! The order matters: first what must stay closed, then what is granted (each path resolved once), then the check of
//! one against the other, and last the rules, carved where a closed path lies inside a grant. Every contradiction
//! ends in an error; nothing is dropped to make a policy fit. Only optional paths and paths of groups may be missing,
//! and each of those leaves a note.

mod carve;
mod grants;
mod locate;
mod network;
mod project;
mod protected;
mod variables;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use crate::capability_set::merge_grants;
use crate::data::PolicyData;
use crate::error::PolicyError;
use crate::facts::Facts;
use crate::profile::MergedProfile;
use crate::request::{HostContext, RunRequest};
use crate::resolved::{PolicyNote, ResolvedPolicy};

use locate::Locator;
use protected::Closures;

/// Inputs shared by all steps of one resolution.
struct Inputs<'a> {
    request: &'a RunRequest,
    host: &'a HostContext,
    profile: &'a MergedProfile,
    data: &'a PolicyData,
    locator: Locator<'a>,
}

/// Resolves one request. Reads the file system through `facts` only.
pub fn resolve(
    request: &RunRequest,
    host: &HostContext,
    profile: &MergedProfile,
    groups: &PolicyData,
    facts: &dyn Facts,
) -> Result<ResolvedPolicy, PolicyError> {
    let inputs = Inputs { request, host, profile, data: groups, locator: Locator::new(facts) };
    let mut notes = Vec::new();
    let environment = variables::rules(&inputs)?;
    let (network, hosts) = network::network(&inputs)?;

    let mut closures = Closures::collect(&inputs)?;
    let bypasses = closures.apply_bypasses(&inputs)?;
    protected::check_bypasses_are_the_persons(&bypasses, profile)?;
    let unix_sockets = grants::sockets(&inputs, &closures, &mut notes)?;
    let grants = merge_grants(grants::collect(&inputs, &closures, &mut notes)?);
    protected::check_bypasses_are_used(&bypasses, &grants, &unix_sockets)?;
    let granted: Vec<_> = grants.iter().map(|grant| grant.resolved.as_path()).collect();
    closures.close_names(&inputs, &granted);

    let home = host.home.as_ref().map(|home| inputs.locator.place(home).path);
    let rules = carve::rules(&inputs.locator, &grants, &closures, home.as_deref(), &mut notes)?;
    let names = std::mem::take(&mut closures.names);
    let closed = carve::closed_paths(closures, &grants, &rules, &mut notes)?;
    notes.extend(closed.iter().filter_map(|closed| hard_links(facts, closed)));

    Ok(ResolvedPolicy {
        profiles: profile.chain.clone(),
        grants,
        rules,
        closed,
        names,
        unix_sockets,
        network,
        hosts,
        environment,
        workdir: inputs.locator.place(&host.cwd).path,
        limits: request.limits.clone(),
        interactive: profile.interactive,
        notes,
    })
}

/// Note for a closed file with several hard links: another name may be granted, and only a search of the disk could
/// tell.
fn hard_links(facts: &dyn Facts, closed: &crate::resolved::ClosedPath) -> Option<PolicyNote> {
    if closed.kind != crate::resolved::PathKind::File {
        return None;
    }
    let links = facts.hard_links(&closed.resolved).ok().filter(|links| *links > 1)?;
    Some(PolicyNote::HardLinks { path: closed.resolved.clone(), links })
}
