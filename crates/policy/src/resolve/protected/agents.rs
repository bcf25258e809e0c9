//! Files that control agents: settings, hooks, commands, plugins, instructions.
//!
//! An agent runs what these say, later and outside the sandbox, so a command that can write them has a way out. They
//! stay readable where a grant covers them and are never writable; no bypass opens them. In an agent's own folder that
//! also applies to absent names where mounts are possible: an empty stand-in is there while the command runs. In a
//! project only existing files are protected. A link in the path is protected as well, or it could be replaced by
//! another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Closures;
use crate::data::Agent;
use crate::expand::{expand, expand_everywhere};
use crate::facts::FoundKind;
use crate::request::GrantKind;
use crate::resolve::Inputs;
use crate::resolved::ClosedBy;

/// Folder in which a project has its profile.
const PROJECT_DIR: &str = ".nono";

pub(super) fn add(closures: &mut Closures, inputs: &Inputs<'_>) {
    let projects = projects(inputs);
    for agent in &inputs.data.agents {
        let mut holder = Holder { closures, inputs, agent };
        for folder in agent.folders.iter().flat_map(|text| expand_everywhere(text, inputs.host)) {
            holder.own_folder(&folder);
        }
        for (_, folder) in inputs.host.agent_folders.iter().filter(|(name, _)| *name == agent.name) {
            holder.own_folder(&inputs.host.absolute(folder));
        }
        for project in &projects {
            holder.project(project);
        }
    }
    hold_profiles(closures, inputs, &projects);
}

/// Protects the profiles of projects, which decide what the next run opens.
fn hold_profiles(closures: &mut Closures, inputs: &Inputs<'_>, projects: &BTreeSet<PathBuf>) {
    let nono = Agent { name: "nono".to_owned(), project: vec![PROJECT_DIR.to_owned()], ..Agent::default() };
    let state = inputs.locator.place(&inputs.host.state_dir).path;
    let mut holder = Holder { closures, inputs, agent: &nono };
    // In the home folder this is nono's own folder, which is closed as a whole.
    let is_own = |project: &&PathBuf| inputs.locator.place(&project.join(PROJECT_DIR)).path != state;
    projects.iter().filter(is_own).for_each(|project| holder.project(project));
}

/// Folders that may be projects: the working directory, and every folder that a flag or profile grants for writing.
fn projects(inputs: &Inputs<'_>) -> BTreeSet<PathBuf> {
    let asked = inputs.request.grants.iter();
    let asked = asked.filter(|grant| grant.access.writes() && grant.kind == GrantKind::Directory);
    let profile = inputs.profile.filesystem.grants.iter();
    let profile = profile
        .filter(|grant| grant.access.writes() && grant.kind == GrantKind::Directory)
        // A path that cannot be expanded is reported or skipped where it is granted.
        .filter_map(|grant| expand(&grant.at.path, inputs.host).ok());
    std::iter::once(inputs.host.cwd.clone())
        .chain(asked.map(|grant| inputs.host.absolute(&grant.path)))
        .chain(profile)
        .collect()
}

struct Holder<'a, 'b> {
    closures: &'a mut Closures,
    inputs: &'a Inputs<'b>,
    agent: &'a Agent,
}

impl Holder<'_, '_> {
    fn own_folder(&mut self, folder: &Path) {
        if self.inputs.locator.place(folder).kind != Some(FoundKind::Directory) {
            return;
        }
        self.hold_link(folder);
        let agent = self.agent;
        for name in agent.files.keys().chain(&agent.directories) {
            let path = folder.join(name);
            self.hold_link(&path);
            self.hold(&path);
        }
    }

    fn project(&mut self, project: &Path) {
        for rest in &self.agent.project {
            let path = project.join(rest);
            if self.inputs.locator.place(&path).kind.is_none() {
                continue;
            }
            let below = path.ancestors().take_while(|dir| *dir != project);
            below.for_each(|dir| self.hold_link(dir));
            self.hold(&path);
        }
    }

    fn hold(&mut self, path: &Path) {
        let by = ClosedBy::Agent(self.agent.name.clone());
        let can_mask = self.inputs.host.can_mask;
        let closure = self.closures.add(self.inputs, path, path, by);
        closure.keep_read = true;
        closure.mask = can_mask;
    }

    fn hold_link(&mut self, path: &Path) {
        let by = ClosedBy::Agent(self.agent.name.clone());
        if let Some(link) = self.closures.add_link(self.inputs, path, by) {
            link.mask = self.inputs.host.can_mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessMode::{self, Read, ReadWrite};
    use crate::error::PolicyError;
    use crate::profile::MergedProfile;
    use crate::request::{HostContext, RunRequest};
    use crate::resolved::{ClosedHow, PathKind, ResolvedPolicy};
    use crate::testing::{FakeTree, data, dir, grant, host};
    use crate::{PolicyData, QueryResult, query_path};

    fn agents() -> PolicyData {
        let agent = Agent {
            name: "scribe".into(),
            folders: vec!["~/.scribe".into()],
            files: [("settings.json".to_owned(), "{}\n".to_owned())].into(),
            directories: vec!["hooks".into()],
            project: vec![".scribe/settings.json".into()],
            ..Agent::default()
        };
        PolicyData { agents: vec![agent], ..data() }
    }

    fn file(path: &str, access: AccessMode) -> RunRequest {
        RunRequest { grants: vec![grant(path, access, GrantKind::File)], ..RunRequest::default() }
    }

    fn tree(more: &[&str]) -> FakeTree {
        let base = ["/usr/bin/nono", "/h/.nono/store", "/h/w/src/main.rs", "/h/.scribe/log"];
        FakeTree::of(&base.into_iter().chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn resolve(tree: &FakeTree, request: &RunRequest, can_mask: bool) -> Result<ResolvedPolicy, PolicyError> {
        let host = HostContext { can_mask, ..host() };
        crate::resolve(request, &host, &MergedProfile::default(), &agents(), tree)
    }

    fn held(policy: &ResolvedPolicy) -> Vec<(&str, PathKind, ClosedHow)> {
        let held = policy.closed.iter().filter(|closed| matches!(closed.by, ClosedBy::Agent(_)));
        held.map(|closed| (closed.resolved.to_str().unwrap(), closed.kind, closed.how)).collect()
    }

    #[test]
    fn what_is_there_and_what_is_not_is_held_in_its_own_folder() {
        let tree = tree(&["/h/.scribe/hooks/a"]);
        let policy = resolve(&tree, &dir("/h/.scribe", ReadWrite), true).unwrap();
        assert_eq!(
            held(&policy),
            [
                ("/h/.scribe/settings.json", PathKind::Absent, ClosedHow::Mask),
                ("/h/.scribe/hooks", PathKind::Directory, ClosedHow::Mask)
            ]
        );
        let ask = |path: &str, want| query_path(&policy, Path::new(path), true, want);
        assert!(matches!(ask("/h/.scribe/hooks/a", Read), QueryResult::Allowed { .. }));
        assert!(matches!(ask("/h/.scribe/hooks/a", ReadWrite), QueryResult::Denied { .. }));
        assert!(matches!(ask("/h/.scribe/log", ReadWrite), QueryResult::Allowed { .. }));
    }

    #[test]
    fn without_mounts_the_folder_is_taken_apart() {
        let tree = tree(&["/h/.scribe/settings.json"]);
        let policy = resolve(&tree, &dir("/h/.scribe", ReadWrite), false).unwrap();
        let held = held(&policy);
        assert!(held.iter().all(|(_, _, how)| *how == ClosedHow::NotGranted), "{held:?}");
        let ask = |path: &str, there, want| query_path(&policy, Path::new(path), there, want);
        let settings = "/h/.scribe/settings.json";
        assert!(matches!(ask(settings, true, Read), QueryResult::Allowed { .. }));
        assert!(matches!(ask(settings, true, ReadWrite), QueryResult::Denied { .. }));
        assert!(matches!(ask("/h/.scribe/log", true, ReadWrite), QueryResult::Allowed { .. }));
        assert!(matches!(ask("/h/.scribe/hooks", false, ReadWrite), QueryResult::Denied { .. }));
    }

    #[test]
    fn a_link_is_held_with_what_it_leads_to() {
        let tree = tree(&["/h/.scribe/settings.json -> /h/w/dots/s.json", "/h/w/dots/s.json"]);
        let request = RunRequest { allow_cwd: true, ..dir("/h/.scribe", ReadWrite) };
        let policy = resolve(&tree, &request, true).unwrap();
        let held = held(&policy);
        assert!(held.contains(&("/h/.scribe/settings.json", PathKind::Link, ClosedHow::Mask)), "{held:?}");
        assert!(held.contains(&("/h/w/dots/s.json", PathKind::File, ClosedHow::Mask)), "{held:?}");
    }

    #[test]
    fn no_grant_and_no_bypass_opens_them() {
        let tree = tree(&["/h/.scribe/settings.json"]);
        let settings = "/h/.scribe/settings.json";
        for request in [
            file(settings, ReadWrite),
            RunRequest { bypass_protection: vec![settings.into()], ..file(settings, ReadWrite) },
            RunRequest { bypass_protection: vec![settings.into()], ..file(settings, Read) },
        ] {
            let error = resolve(&tree, &request, true).unwrap_err();
            assert!(matches!(error, PolicyError::AgentSettings { .. }), "{error}");
        }
        assert!(resolve(&tree, &file(settings, Read), true).is_ok());
    }

    #[test]
    fn a_project_keeps_what_it_has_and_an_absent_agent_nothing() {
        let policy = resolve(
            &FakeTree::of(&[
                "/usr/bin/nono",
                "/h/.nono/store",
                "/h/w/.scribe/settings.json",
                "/h/p/.scribe/x",
            ]),
            &RunRequest { allow_cwd: true, ..dir("/h/p", ReadWrite) },
            true,
        );
        let policy = policy.unwrap();
        assert_eq!(held(&policy), [("/h/w/.scribe/settings.json", PathKind::File, ClosedHow::Mask)]);
    }
}
