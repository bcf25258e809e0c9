//! Network policy of a run.
//!
//! `--allow-net` and `--block-net` replace whatever a profile says. Flags for ports replace the profile's ports; hosts
//! add to the profile's hosts. A profile that opens the whole network is narrowed by flags for hosts or ports, but must
//! not list hosts or ports itself.

use super::Inputs;
use crate::access::CapabilitySource;
use crate::error::PolicyError;
use crate::profile::MergedProfile;
use crate::resolved::{HostGrant, NetworkPolicy};

/// Network policy, and its hosts with their sources.
pub(super) fn network(inputs: &Inputs<'_>) -> Result<(NetworkPolicy, Vec<HostGrant>), PolicyError> {
    let (request, profile) = (inputs.request, inputs.profile);
    let mut asked = request.hosts.clone();
    let user = |rule| HostGrant { rule, source: CapabilitySource::User };
    let ports = match &request.network {
        Some(whole @ (NetworkPolicy::Allowed | NetworkPolicy::Blocked)) => {
            return match asked.into_iter().next() {
                None => Ok((whole.clone(), Vec::new())),
                Some(HostGrant { rule, source }) => {
                    let open = *whole == NetworkPolicy::Allowed;
                    Err(PolicyError::HostContradiction { rule, by: source, open })
                }
            };
        }
        Some(NetworkPolicy::Ports { connect, listen }) => Some((connect, listen)),
        Some(NetworkPolicy::Filtered { hosts, connect, listen }) => {
            asked.extend(hosts.iter().cloned().map(user));
            Some((connect, listen)).filter(|_| !(connect.is_empty() && listen.is_empty()))
        }
        None => None,
    };
    let section = &profile.network;
    let hosts = own_hosts(profile)?;
    let own_ports =
        ports.is_none() && !(section.allow_connect_port.is_empty() && section.listen_port.is_empty());
    if section.block == Some(false) {
        if own_ports || !hosts.is_empty() {
            return Err(PolicyError::NetworkContradiction { profile: profile.name().to_owned() });
        }
        if request.network.is_none() && asked.is_empty() {
            return Ok((NetworkPolicy::Allowed, Vec::new()));
        }
    }
    let (connect, listen) = ports.unwrap_or((&section.allow_connect_port, &section.listen_port));
    let (connect, listen) = (connect.clone(), listen.clone());
    let hosts = hosts.into_iter().chain(asked).fold(Vec::new(), without_repeating);
    let network = if !hosts.is_empty() {
        let rules = hosts.iter().map(|grant| grant.rule.clone()).collect();
        NetworkPolicy::Filtered { hosts: rules, connect, listen }
    } else if connect.is_empty() && listen.is_empty() {
        NetworkPolicy::Blocked
    } else {
        NetworkPolicy::Ports { connect, listen }
    };
    Ok((network, hosts))
}

/// Hosts of the profile, each with the profile that names it.
fn own_hosts(profile: &MergedProfile) -> Result<Vec<HostGrant>, PolicyError> {
    let host = |text: &String| {
        let name = profile.domain_from.get(text).map_or(profile.name(), String::as_str).to_owned();
        match text.parse() {
            Ok(rule) => Ok(HostGrant { rule, source: CapabilitySource::Profile(name) }),
            Err(source) => Err(PolicyError::BadHost { profile: name, source }),
        }
    };
    profile.network.allow_domain.iter().map(host).collect()
}

/// Adds a host unless it is already known; the first source is kept.
fn without_repeating(mut known: Vec<HostGrant>, next: HostGrant) -> Vec<HostGrant> {
    if !known.iter().any(|grant| grant.rule == next.rule) {
        known.push(next);
    }
    known
}
