//! Scope of tracking: which paths of a run are tracked, and which exclusion rules apply.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nono_checkpoint::Ignored;
use nono_policy::profile::RollbackSection;
use nono_policy::resolved::FsCapability;
use nono_policy::{CapabilitySource, ResolvedPolicy, is_within};
use nono_snapshot::ExclusionConfig;
use nono_snapshot::exclusion::LargePacks;

use super::settings::RollbackSettings;
use super::tracking::RollbackRequest;

/// Writable grants of a run, by whether they are tracked.
#[derive(Debug, Default)]
pub struct Roots {
    pub tracked: Vec<PathBuf>,
    /// State of tools, which is not part of an undo.
    pub of_tools: Vec<PathBuf>,
}

/// Writable grants, files and directories, by whether they are tracked. Devices and kernel file systems have no state
/// to restore; nono's own folder of the session is skipped. Paths opened by a policy group are the state of tools (an
/// agent's transcripts, a package manager's cache), which should not be undone with a project: they are tracked only
/// with `all`, or if a path in them is included by name.
pub fn roots(policy: &ResolvedPolicy, session_dir: &Path, request: Option<&RollbackRequest>) -> Roots {
    let all = request.is_some_and(|request| request.all);
    let included = |path: &Path| {
        let names = request.into_iter().flat_map(|request| &request.include).map(Path::new);
        names.filter(|name| name.is_absolute()).any(|name| is_within(path, name) || is_within(name, path))
    };
    let is_of_tools = |grant: &FsCapability| {
        matches!(grant.source, CapabilitySource::Group(_)) && !all && !included(&grant.resolved)
    };
    let mut roots = Roots::default();
    for grant in policy.grants.iter().filter(|grant| grant.access.writes()) {
        let path = &grant.resolved;
        if is_within(path, session_dir) || !has_state(path) {
            continue;
        }
        let list = if is_of_tools(grant) { &mut roots.of_tools } else { &mut roots.tracked };
        list.push(path.clone());
    }
    let Roots { tracked, of_tools } = &mut roots;
    for list in [&mut *tracked, &mut *of_tools] {
        list.sort();
        list.dedup();
    }
    of_tools.retain(|path| !tracked.iter().any(|root| is_within(path, root)));
    roots
}

/// Message about paths that the command may write and that an undo does not restore.
pub(super) fn not_part_of_an_undo(of_tools: &[PathBuf]) -> Option<String> {
    let mut paths: Vec<&PathBuf> = of_tools.iter().collect();
    // Caches last: they matter least to the user.
    paths.sort_by_key(|path| path.iter().any(|name| name == ".cache"));
    let names: Vec<String> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = of_tools.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty())
        .then(|| format!("undo does not change the state of tools: {}{more}", names.join(", ")))
}

/// Maximum number of paths listed.
const NAMED: usize = 3;

/// Whether the path has state that can be restored.
pub(super) fn has_state(path: &Path) -> bool {
    let kernel = [Path::new("/dev"), Path::new("/proc"), Path::new("/sys")];
    !kernel.iter().any(|dir| is_within(path, dir))
        && !fs::symlink_metadata(path).is_ok_and(|meta| is_device(meta.file_type()))
}

fn is_device(kind: fs::FileType) -> bool {
    kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
}

/// Exclusion rules of a run: flags, then the profile, then the settings.
pub(super) fn exclusion(
    request: &RollbackRequest,
    profile: &RollbackSection,
    settings: &RollbackSettings,
) -> ExclusionConfig {
    let is_glob = |pattern: &&String| pattern.contains(['*', '?', '[']);
    let (globs, patterns): (Vec<&String>, Vec<&String>) = request.exclude.iter().partition(is_glob);
    let both = |from: &[String], more: Vec<&String>| from.iter().chain(more).cloned().collect();
    let leaves_ignored =
        !request.all && profile.use_gitignore.unwrap_or(settings.ignored == Ignored::LeaveOut);
    let limited = !request.all && !leaves_ignored;
    ExclusionConfig {
        use_gitignore: leaves_ignored,
        exclude_patterns: both(&profile.exclude_patterns, patterns),
        exclude_globs: both(&profile.exclude_globs, globs),
        force_include: both(&profile.force_include, request.include.iter().collect()),
        artifacts: !request.all,
        max_repository: None,
        max_ignored_folder: limited.then(|| settings.max_ignored_folder()),
        large_git_packs: LargePacks::Take,
    }
}
