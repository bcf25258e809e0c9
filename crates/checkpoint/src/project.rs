//! Projects: which folder a path belongs to, and where its history is kept.
//!
//! The folder of a path is the nearest one above it that has a history, else the nearest with a marker, else the
//! directory of the path itself. Two exceptions: a worktree is a project of its own, also inside another project; and a
//! folder that has a history without any marker (somebody edited a loose file there once) does not swallow the projects
//! below it. `/`, the home folder, what is above it, and folders of the system are no projects. Nothing is written here.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use nono_snapshot::file::{self, Sync};
use nono_snapshot::session::{Recorded, Session};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::CheckpointError;
use crate::manager::Host;
use crate::place::Place;

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

/// Folders that everything is in: never a project, though one may stand in them.
const SYSTEM: [&str; 25] = [
    "/bin",
    "/boot",
    "/dev",
    "/dev/shm",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/media",
    "/mnt",
    "/nix",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/snap",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/tmp",
];

/// The kernel's own: nothing in them is a file of anybody's.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The name of a project's folder below `projects/`: a digest of the resolved path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProjectHash(String);

impl ProjectHash {
    /// Of a folder by its resolved path.
    pub fn of(workdir: &Path) -> ProjectHash {
        ProjectHash(hex(&Sha256::digest(workdir.as_os_str().as_encoded_bytes()))[..16].to_owned())
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The folder that a path belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Absolute and without links.
    pub dir: PathBuf,
    pub why: Why,
}

/// Why this folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has a history already.
    Registered,
    /// A name in it.
    Marker(&'static str),
    /// Nothing above it says otherwise: the directory of the path itself.
    Itself,
}

/// A project that has a history: `project.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    /// ISO 8601, UTC.
    pub created_at: String,
    pub last_touch: String,
    /// Where it stood when it was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

impl Project {
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// The folder is gone, and not only its disk.
    pub fn is_orphan(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_gone(&self.workdir))
    }

    /// What stands in a folder of `projects/`; nothing where none does. Where the file is damaged or missing, the engine's
    /// record says what it would.
    pub fn load(folder: &Path) -> Result<Option<Project>, CheckpointError> {
        match crate::json::load(&folder.join(PROJECT)) {
            Ok(Some(project)) => Ok(Some(project)),
            Ok(None) | Err(CheckpointError::Damaged { .. }) => Ok(Project::from_record(folder)),
            Err(error) => Err(error),
        }
    }

    /// The same for one who holds the folder: a damaged file is set aside, and written anew.
    pub(crate) fn load_or_rebuild(folder: &Path) -> Result<Option<Project>, CheckpointError> {
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

    /// What the engine's record knows. Nothing where it cannot be read, or is of another folder.
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
            place: Place::of(&workdir),
            workdir,
        })
    }

    pub(crate) fn save(&self, folder: &Path) -> Result<(), CheckpointError> {
        crate::json::save(&folder.join(PROJECT), self, Sync::Whole)
    }
}

pub(crate) const PROJECT: &str = "project.json";

/// Where all histories are.
pub fn projects_dir(host: &Host) -> PathBuf {
    host.state_dir.join("projects")
}

/// Where the history of a folder (by its resolved path) is, or would be.
pub fn folder_of(host: &Host, workdir: &Path) -> PathBuf {
    projects_dir(host).join(ProjectHash::of(workdir).as_str())
}

/// The project of a path, which need not be there. What a link at the end of it leads to counts: that is what a write
/// changes.
pub fn root_of(host: &Host, path: &Path) -> Result<Root, CheckpointError> {
    root_within(host, path, None)
}

/// The same, but no project reaches further up than the folders in `within`: where a marker or a history stands above
/// one of them, that folder is the project.
pub fn root_within(host: &Host, path: &Path, within: Option<&[PathBuf]>) -> Result<Root, CheckpointError> {
    let path = resolve(path)?;
    let inside = |dir: &Path| within.is_none_or(|folders| folders.iter().any(|known| dir.starts_with(known)));
    if !inside(&path) {
        return Err(CheckpointError::NotAllowed { path });
    }
    let state = host.state_dir.canonicalize().unwrap_or_else(|_| host.state_dir.clone());
    if path.starts_with(&state) {
        return Err(CheckpointError::TooBroad { path, why: "it is nono's own state" });
    }
    let home = host.home.canonicalize().unwrap_or_else(|_| host.home.clone());
    let all = || nameable(&path).take_while(|dir| too_broad(dir, &home).is_none());
    let narrow = || all().take_while(|dir| inside(dir));
    let registered = narrow().find(|dir| is_registered(host, dir));
    let marked = narrow().find_map(|dir| Some((dir, marker(dir)?)));
    match (registered, marked) {
        (Some(dir), None) => Ok(Root { dir: dir.to_owned(), why: Why::Registered }),
        (None, Some((dir, name))) => Ok(Root { dir: dir.to_owned(), why: Why::Marker(name) }),
        (Some(registered), Some((dir, name))) => {
            // A marker further up, or of the same folder, has nothing to say.
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

/// Refuse a folder that is too broad for a project, by its resolved path.
pub(crate) fn ensure_narrow(host: &Host, dir: &Path) -> Result<(), CheckpointError> {
    let home = host.home.canonicalize().unwrap_or_else(|_| host.home.clone());
    let state = host.state_dir.canonicalize().unwrap_or_else(|_| host.state_dir.clone());
    let own = dir.starts_with(&state).then_some("it is nono's own state");
    match own.or_else(|| too_broad(dir, &home)) {
        Some(why) => Err(CheckpointError::TooBroad { path: dir.to_owned(), why }),
        None => Ok(()),
    }
}

/// The directory of the path itself; the nearest one that is there.
fn itself(path: &Path, home: &Path) -> Result<Root, CheckpointError> {
    let dir = nameable(path).find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    match too_broad(dir, home).or_else(|| of_the_system(dir)) {
        Some(why) => Err(CheckpointError::TooBroad { path: dir.to_owned(), why }),
        None => Ok(Root { dir: dir.to_owned(), why: Why::Itself }),
    }
}

/// Below these only a folder with a marker is somebody's project.
fn of_the_system(dir: &Path) -> Option<&'static str> {
    const BELOW: [&str; 11] =
        ["/bin", "/boot", "/etc", "/lib", "/lib64", "/opt", "/run", "/sbin", "/usr", "/var/lib", "/var/log"];
    BELOW.iter().any(|system| dir.starts_with(system)).then_some("it belongs to the system")
}

fn too_broad(dir: &Path, home: &Path) -> Option<&'static str> {
    if dir.parent().is_none() {
        return Some("it is the root of everything");
    }
    if dir == home {
        return Some("it is the home folder");
    }
    if home.starts_with(dir) {
        return Some("the home folder is in it");
    }
    if SYSTEM.iter().any(|system| dir == Path::new(system)) {
        return Some("it is a folder of the system");
    }
    if KERNEL.iter().any(|kernel| dir.starts_with(kernel)) && !dir.starts_with("/dev/shm") {
        return Some("it belongs to the kernel");
    }
    (dir.parent() == Some(Path::new("/home"))).then_some("it is somebody's home folder")
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
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (cwd, home) = (resolved(cwd), resolved(home));
    let Some(dir) = path.ancestors().find(|dir| marker(dir).is_some()) else { return false };
    !cwd.starts_with(dir) && too_broad(dir, &home).is_none() && of_the_system(dir).is_none()
}

/// A `.git` file that leads to the place where a repository keeps its worktrees, and not to that of its submodules.
fn is_worktree(dir: &Path) -> bool {
    let git = dir.join(".git");
    let small = git.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() < 8192);
    let text = if small { file::read(&git).unwrap_or_default() } else { Vec::new() };
    text.starts_with(b"gitdir:") && text.windows(11).any(|part| part == b"/worktrees/")
}

/// How many links may lead to one another, as for the kernel.
const LINKS: usize = 40;

/// Where a path leads: what is there of it without links, the rest as it is written.
fn resolve(path: &Path) -> Result<PathBuf, CheckpointError> {
    let mut path = std::path::absolute(path).map_err(CheckpointError::io(path))?;
    for _ in 0..LINKS {
        if let Ok(resolved) = path.canonicalize() {
            return Ok(resolved);
        }
        path = place(&path)?;
        // A link to something that is not there: written through, it comes to be.
        match path.read_link() {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    let source = std::io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error());
    Err(CheckpointError::Io { path, source })
}

/// The place that a path names: the directories on the way without links, its last name as it is.
pub fn place(path: &Path) -> Result<PathBuf, CheckpointError> {
    let path = plain(&std::path::absolute(path).map_err(CheckpointError::io(path))?);
    let resolved = path.parent().and_then(|parent| existing(nameable(parent), &path));
    Ok(resolved.unwrap_or(path))
}

/// Where a path leads, as far as it is there: links are followed up to the deepest directory that exists.
pub fn leads_to(path: &Path) -> Option<PathBuf> {
    existing(nameable(path), path)
}

fn existing<'p>(mut ancestors: impl Iterator<Item = &'p Path>, path: &Path) -> Option<PathBuf> {
    ancestors.find_map(|above| {
        let resolved = above.canonicalize().ok()?;
        Some(resolved.join(path.strip_prefix(above).ok()?))
    })
}

/// The path and its ancestors, as far as a system call takes their names. An agent may name a path of any length, and
/// asking for each of its thousands of ancestors would take minutes.
fn nameable(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip_while(|dir| dir.as_os_str().len() >= LONGEST_PATH)
}

/// Bytes of a path that the kernel takes, with its end (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;

/// Without `.` and `..`. A `..` after a link is taken as it is written, unless what is before it is there.
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
