//! Projects: the folder that a path belongs to, and the location of its history.
//!
//! The folder of a path is the nearest one above it that has a history, else the nearest with a marker, else the
//! directory of the path itself. Two exceptions: a worktree is a project of its own, also inside another project; and a
//! folder that has a history without any marker (a loose file was edited there once) does not include the projects
//! below it. `/`, the home folder, its parents, and folders of the system are not projects. Nothing is written here.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use nono_snapshot::file::{self, Sync};
use nono_snapshot::session::{Recorded, Session};
use nono_sys::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{CheckpointError, Result};
use crate::host::Host;
use crate::project_path::ProjectPath;

/// Names that make a folder a project.
pub const MARKERS: [&str; 24] = [
    ".git",
    ".hg",
    ".jj",
    ".svn",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "go.mod",
    "Makefile",
    "CMakeLists.txt",
    "meson.build",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "deno.json",
    "Package.swift",
    "pubspec.yaml",
    "flake.nix",
];

/// Top-level folders: never a project, though a project may be in them.
const SYSTEM: &str = "
    /bin /boot /dev /dev/shm /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /nix /opt /proc /run
    /sbin /snap /srv /sys /tmp /usr /usr/local /var /var/tmp
";

/// Folders of the kernel, which hold no ordinary files.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Name of a project's folder below `projects/`: a digest of the resolved path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProjectHash(String);

impl ProjectHash {
    /// Hash of a folder, by its resolved path.
    pub fn of(workdir: &Path) -> ProjectHash {
        ProjectHash(hex::encode(&Sha256::digest(workdir.as_os_str().as_encoded_bytes()))[..16].to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Project folder that a path belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Absolute path without links.
    pub dir: PathBuf,
    pub why: Why,
}

/// Reason why this folder is the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Project with a history.
    Registered,
    /// Folder that contains this marker.
    Marker(&'static str),
    /// Directory of the path itself, since nothing above it is a project.
    Itself,
}

/// Project that has a history; content of `project.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    /// ISO 8601, UTC.
    pub created_at: String,
    pub last_touch: String,
    /// Location at which it was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ProjectPath>,
}

impl Project {
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// Whether the folder is gone, and not only its disk.
    pub fn is_orphan(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_gone(&self.workdir))
    }

    /// Loads the project in a folder of `projects/`, if there is one; without a sound file, from the engine's record.
    pub fn load(folder: &Path) -> Result<Option<Project>> {
        match crate::json::load(&folder.join(PROJECT)) {
            Ok(Some(project)) => Ok(Some(project)),
            Ok(None) | Err(CheckpointError::Damaged { .. }) => Ok(Project::from_record(folder)),
            Err(error) => Err(error),
        }
    }

    /// Loads the project for the holder of the lock: a damaged file is moved aside and written anew.
    pub(crate) fn load_or_rebuild(folder: &Path) -> Result<Option<Project>> {
        let (project, damaged) = crate::json::load_or_set_aside(&folder.join(PROJECT))?;
        if project.is_some() {
            return Ok(project);
        }
        let project = Project::from_record(folder);
        if damaged.is_some()
            && let Some(project) = &project
        {
            project.save(folder)?;
        }
        Ok(project)
    }

    /// Project from the engine's record; `None` if that cannot be read, or is of another folder.
    fn from_record(folder: &Path) -> Option<Project> {
        let record = Session::new(folder).record().ok()??;
        let workdir = record.roots.first()?.clone();
        if folder.file_name()? != ProjectHash::of(&workdir).as_str() {
            return None;
        }
        let time = |recorded: Option<&Recorded>| {
            recorded.map_or_else(nono_sys::time::now_iso, |recorded| recorded.timestamp.clone())
        };
        Some(Project {
            created_at: time(record.snapshots.first()),
            last_touch: time(record.snapshots.last()),
            place: ProjectPath::of(&workdir),
            workdir,
        })
    }

    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        crate::json::save(&folder.join(PROJECT), self, Sync::Whole)
    }
}

pub(crate) const PROJECT: &str = "project.json";

/// Folder of all histories.
pub fn projects_dir(host: &Host) -> PathBuf {
    host.state_dir.join("projects")
}

/// Folder of the history of a project (by its resolved path), existing or not.
pub fn folder_of(host: &Host, workdir: &Path) -> PathBuf {
    projects_dir(host).join(ProjectHash::of(workdir).as_str())
}

/// Project of a path, which need not exist. A link at its end is followed, since a write changes its target.
pub fn root_of(host: &Host, path: &Path) -> Result<Root> {
    root_within(host, path, None)
}

/// Project of a path, limited to the folders in `within`: one of them, if a marker or a history is only above it.
pub fn root_within(host: &Host, path: &Path, within: Option<&[PathBuf]>) -> Result<Root> {
    let path = resolve(path)?;
    let inside = |dir: &Path| within.is_none_or(|folders| folders.iter().any(|known| dir.starts_with(known)));
    if !inside(&path) {
        return Err(CheckpointError::NotAllowed { path });
    }
    if path.starts_with(real(&host.state_dir)) {
        return Err(CheckpointError::TooBroad { path, why: OWN_STATE });
    }
    let home = real(&host.home);
    let all = || nameable(&path).take_while(|dir| too_broad(dir, &home).is_none());
    let narrow = || all().take_while(|dir| inside(dir));
    let registered = narrow().find(|dir| is_registered(host, dir));
    let marked = narrow().find_map(|dir| Some((dir, marker(dir)?)));
    match (registered, marked) {
        (Some(dir), None) => Ok(Root { dir: dir.to_owned(), why: Why::Registered }),
        (None, Some((dir, name))) => Ok(Root { dir: dir.to_owned(), why: Why::Marker(name) }),
        (Some(registered), Some((dir, name))) => {
            // A marker further up, or in the same folder, does not matter.
            let inside = dir != registered && dir.starts_with(registered);
            let worktree = narrow().take_while(|dir| *dir != registered).find(|dir| is_worktree(dir));
            Ok(match worktree {
                Some(dir) => Root { dir: dir.to_owned(), why: Why::Marker(".git") },
                None if inside && marker(registered).is_none() => {
                    Root { dir: dir.to_owned(), why: Why::Marker(name) }
                }
                None => Root { dir: registered.to_owned(), why: Why::Registered },
            })
        }
        (None, None) => {
            let further_up = |dir: &&Path| is_registered(host, dir) || marker(dir).is_some();
            let highest = narrow().last().filter(|dir| dir.is_dir());
            match highest.filter(|_| within.is_some() && all().any(|dir| further_up(&dir))) {
                Some(dir) => Ok(Root { dir: dir.to_owned(), why: Why::Itself }),
                None => itself(&path, &home),
            }
        }
    }
}

/// Refuses a folder that is too broad for a project, by its resolved path.
pub(crate) fn ensure_narrow(host: &Host, dir: &Path) -> Result<()> {
    let own = dir.starts_with(real(&host.state_dir)).then_some(OWN_STATE);
    match own.or_else(|| too_broad(dir, &real(&host.home))) {
        Some(why) => Err(CheckpointError::TooBroad { path: dir.to_owned(), why }),
        None => Ok(()),
    }
}

const OWN_STATE: &str = "it is nono's own state";

/// Path without links, if it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Directory of the path itself; the nearest existing one.
fn itself(path: &Path, home: &Path) -> Result<Root> {
    let dir = nameable(path).find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    match too_broad(dir, home).or_else(|| of_the_system(dir)) {
        Some(why) => Err(CheckpointError::TooBroad { path: dir.to_owned(), why }),
        None => Ok(Root { dir: dir.to_owned(), why: Why::Itself }),
    }
}

/// Reason why a folder below a system folder is not a project without a marker.
fn of_the_system(dir: &Path) -> Option<&'static str> {
    const BELOW: [&str; 11] =
        ["/bin", "/boot", "/etc", "/lib", "/lib64", "/opt", "/run", "/sbin", "/usr", "/var/lib", "/var/log"];
    BELOW.iter().any(|system| dir.starts_with(system)).then_some("it belongs to the system")
}

fn too_broad(dir: &Path, home: &Path) -> Option<&'static str> {
    if dir.parent().is_none() {
        return Some("it is the root directory");
    }
    if dir == home {
        return Some("it is the home folder");
    }
    if home.starts_with(dir) {
        return Some("the home folder is in it");
    }
    if SYSTEM.split_whitespace().any(|system| dir == Path::new(system)) {
        return Some("it is a folder of the system");
    }
    if KERNEL.iter().any(|kernel| dir.starts_with(kernel)) && !dir.starts_with("/dev/shm") {
        return Some("it belongs to the kernel");
    }
    (dir.parent() == Some(Path::new("/home"))).then_some("it is the home folder of a user")
}

fn is_registered(host: &Host, dir: &Path) -> bool {
    let folder = folder_of(host, dir);
    folder.join("record.json").is_file()
}

fn marker(dir: &Path) -> Option<&'static str> {
    MARKERS.into_iter().find(|name| dir.join(name).symlink_metadata().is_ok())
}

/// Whether a path lies in a folder with a marker that `cwd` does not lie in, and that may be a project.
pub(crate) fn is_in_another(path: &Path, cwd: &Path, home: &Path) -> bool {
    // An agent may name any path: of a deeper one each folder on the way would be asked for its markers.
    const DEEPEST: usize = 40;
    if path.components().count() > DEEPEST {
        return false;
    }
    let Some(path) = path.ancestors().find_map(|above| above.canonicalize().ok()) else { return false };
    let (cwd, home) = (real(cwd), real(home));
    let Some(dir) = path.ancestors().find(|dir| marker(dir).is_some()) else { return false };
    !cwd.starts_with(dir) && too_broad(dir, &home).is_none() && of_the_system(dir).is_none()
}

/// Whether the `.git` file points to a repository's worktrees, and not to its submodules.
fn is_worktree(dir: &Path) -> bool {
    let git = dir.join(".git");
    let small = git.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() < 8192);
    let text = if small { file::read(&git).unwrap_or_default() } else { Vec::new() };
    text.starts_with(b"gitdir:") && text.windows(11).any(|part| part == b"/worktrees/")
}

/// Maximum number of links in one path, as in the kernel.
const LINKS: usize = 40;

/// Resolved path: the existing part without links, the rest as written.
fn resolve(path: &Path) -> Result<PathBuf> {
    let mut path = std::path::absolute(path).map_err(CheckpointError::io(path))?;
    for _ in 0..LINKS {
        if let Ok(resolved) = path.canonicalize() {
            return Ok(resolved);
        }
        path = place(&path)?;
        // A dangling link: a write through it creates its target.
        match path.read_link() {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    let source = std::io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error());
    Err(CheckpointError::Io { path, source })
}

/// Path with its directories resolved and its last component as written.
pub fn place(path: &Path) -> Result<PathBuf> {
    let path = plain(&std::path::absolute(path).map_err(CheckpointError::io(path))?);
    let resolved = path.parent().and_then(|parent| existing(nameable(parent), &path));
    Ok(resolved.unwrap_or(path))
}

/// Path resolved as far as it exists: links are followed up to the deepest existing directory.
pub fn leads_to(path: &Path) -> Option<PathBuf> {
    existing(nameable(path), path)
}

fn existing<'p>(mut ancestors: impl Iterator<Item = &'p Path>, path: &Path) -> Option<PathBuf> {
    ancestors.find_map(|above| {
        let resolved = above.canonicalize().ok()?;
        Some(resolved.join(path.strip_prefix(above).ok()?))
    })
}

/// The path and its ancestors that are short enough for a system call. An agent may name a path of any length, and
/// looking up each of its thousands of ancestors would take minutes.
fn nameable(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip_while(|dir| dir.as_os_str().len() >= LONGEST_PATH)
}

/// Maximum size of a path in the kernel, with its terminator (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;

/// Path without `.` and `..`. A `..` after a link is taken lexically, unless the part before it exists.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if let Ok(resolved) = plain.canonicalize() {
                    plain = resolved;
                }
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
