//! The embedded policy as a document.
//!
//! Made from [`PolicyData`] on demand, so that paths are listed in one place. A document knows neither `$XDG_*` nor
//! patterns: the former are expanded for this host, a denied folder to both places it may have, and paths that a group
//! allows by a pattern (`/etc/python*`) are left out. Protected groups are called `deny_` and their name, and are
//! required. A document cannot deny writing alone, so paths that are only kept from being written are not in it.
//! `deny_credentials` joins all groups that hold keys, tokens and passwords.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Allow, Deny, DocumentGroup, Meta, PolicyDocument};
use crate::data::{Group, GroupKind, PolicyData};
use crate::expand::{expand, expand_everywhere};
use crate::request::HostContext;

/// Protected groups that hold keys, tokens and passwords.
const CREDENTIALS: [&str; 7] = [
    "ssh",
    "gnupg",
    "cloud_credentials",
    "tool_credentials",
    "agent_credentials",
    "wallets",
    "password_stores",
];

pub fn embedded(host: &HostContext) -> PolicyDocument {
    let data = PolicyData::embedded();
    let mut groups: BTreeMap<String, DocumentGroup> =
        said(data).map(|group| (name_of(group), as_document(group, host))).collect();
    let credentials = CREDENTIALS.iter().filter_map(|name| data.group(name));
    let access = credentials.flat_map(|group| denied(group, host)).collect();
    groups.insert(
        "deny_credentials".to_owned(),
        protected("Keys, tokens and passwords, of everything that is known to keep some", access),
    );
    let meta = Meta { version: Some(1), schema_version: Some("3.0".to_owned()) };
    PolicyDocument { meta: Some(meta), groups, profiles: None }
}

fn said(data: &PolicyData) -> impl Iterator<Item = &Group> {
    data.groups.iter().filter(|group| group.held.is_empty())
}

fn name_of(group: &Group) -> String {
    match group.kind {
        GroupKind::Protected => format!("deny_{}", group.name),
        GroupKind::Base | GroupKind::Tool => group.name.clone(),
    }
}

fn as_document(group: &Group, host: &HostContext) -> DocumentGroup {
    if group.kind == GroupKind::Protected {
        return protected(&group.description, denied(group, host));
    }
    let list = |texts: &[String]| texts.iter().filter_map(|text| allowed(text, host)).collect::<Vec<_>>();
    let readwrite = [list(&group.allow), list(&group.create)].concat();
    let allow = Allow { read: list(&group.read), write: list(&group.write), readwrite };
    DocumentGroup { description: group.description.clone(), allow: Some(allow), ..DocumentGroup::default() }
}

fn protected(description: &str, access: Vec<String>) -> DocumentGroup {
    let deny = Deny { access, ..Deny::default() };
    DocumentGroup {
        description: description.to_owned(),
        required: true,
        deny: Some(deny),
        ..DocumentGroup::default()
    }
}

fn denied(group: &Group, host: &HostContext) -> Vec<String> {
    group.closed.iter().flat_map(|text| everywhere(text, host)).collect()
}

/// Path on this host, for a path that a group allows.
fn allowed(text: &str, host: &HostContext) -> Option<String> {
    if text.ends_with('*') {
        return None;
    }
    if !text.starts_with("$XDG_") {
        return Some(text.to_owned());
    }
    shorten(&expand(text, host).ok()?, host)
}

fn everywhere(text: &str, host: &HostContext) -> Vec<String> {
    if !text.starts_with("$XDG_") {
        return vec![text.to_owned()];
    }
    expand_everywhere(text, host).iter().filter_map(|path| shorten(path, host)).collect()
}

/// Writes a path below the home folder as `~/`, so that the document is the same for every user with default settings.
/// `None` for a path that is not UTF-8, which a document cannot hold.
fn shorten(path: &Path, host: &HostContext) -> Option<String> {
    match host.home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => Some(format!("~/{}", below.to_str()?)),
        None => Some(path.to_str()?.to_owned()),
    }
}
