//! Saving of approved grants to a profile of the user's that extends the one that was used.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nono::approval::Scope;
use nono::diagnostic::shown;
use nono::report::Expansion;
use nono::{GrantKind, ProfileRef, ProfileStore, grant_flag};
use serde_json::{Map, Value, json};

use crate::message;

/// Suffix of the names of such profiles.
const ENDING: &str = "-approved";

/// Reason why grants were not saved.
#[derive(Debug)]
enum Unsaved {
    NoFolder,
    /// A profile given as a file has no name that another one could extend.
    NotNamed(PathBuf),
    /// The file cannot be rewritten without losing something in it.
    NotOurs {
        file: PathBuf,
        why: String,
    },
    Io {
        file: PathBuf,
        error: io::Error,
    },
}

impl fmt::Display for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsaved::NoFolder => f.write_str("there is no profile folder"),
            Unsaved::NotNamed(file) => {
                write!(f, "{} is not in the profile folder, so no profile can extend it", shown(file))
            }
            Unsaved::NotOurs { file, why } => write!(f, "{} was not changed: {why}", shown(file)),
            Unsaved::Io { file, error } => write!(f, "{}: {}", shown(file), nono::session::io_words(error)),
        }
    }
}

/// Saves the grants with scope `Saved` and prints the result. `dir`: the user's profiles; `used`: the run's profile.
pub(crate) fn save(dir: Option<&Path>, used: Option<&ProfileRef>, expansions: &[Expansion]) {
    let wanted: Vec<&Expansion> = expansions.iter().filter(|grant| grant.scope == Scope::Saved).collect();
    if wanted.is_empty() {
        return;
    }
    let (named, nameless): (Vec<&Expansion>, Vec<&Expansion>) =
        wanted.into_iter().partition(|grant| grant.path.to_str().is_some());
    for grant in nameless {
        message::line(&format!(
            "not saved: {}: a profile cannot hold a name that is not UTF-8",
            shown(&grant.path)
        ));
    }
    match keep(dir, used, &named) {
        Ok((_, 0)) => {}
        Ok((name, count)) => {
            let grants = if count == 1 { "grant" } else { "grants" };
            message::line(&format!("saved {count} {grants} to profile {name}; use it with --profile {name}"));
        }
        Err(error) => {
            message::line(&format!("the grants were not saved: {error}"));
            for grant in named {
                message::line(&format!("  next time: {} {}", flag(grant), shown(&grant.path)));
            }
        }
    }
}

/// Adds grants to the profile; returns its name and the number of grants that are new.
fn keep(
    dir: Option<&Path>,
    used: Option<&ProfileRef>,
    grants: &[&Expansion],
) -> Result<(String, usize), Unsaved> {
    let dir = dir.ok_or(Unsaved::NoFolder)?;
    let base = base(dir, used)?;
    let name = if base.ends_with(ENDING) { base.clone() } else { format!("{base}{ENDING}") };
    let file = dir.join(format!("{name}.json"));
    let failed = |error| Unsaved::Io { file: file.clone(), error };
    let mut profile = match fs::read_to_string(&file) {
        Ok(text) => existing(dir, &name, &file, &text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => fresh(dir, &name, &base)?,
        Err(error) => return Err(failed(error)),
    };
    let strange = || Unsaved::NotOurs {
        file: file.clone(),
        why: "its \"filesystem\" entry has an unexpected form".to_owned(),
    };
    let mut count = 0;
    for grant in grants {
        count += usize::from(add(&mut profile, grant).ok_or_else(strange)?);
    }
    if count > 0 {
        let text = format!("{:#}\n", Value::Object(profile));
        replace(&file, text.as_bytes()).map_err(failed)?;
    }
    Ok((name, count))
}

/// Name of the profile to extend.
fn base(dir: &Path, used: Option<&ProfileRef>) -> Result<String, Unsaved> {
    match used {
        None => Ok("default".to_owned()),
        Some(ProfileRef::Name(name)) => Ok(name.clone()),
        Some(ProfileRef::File(file)) => {
            let named =
                file.parent().and_then(|parent| parent.canonicalize().ok()) == dir.canonicalize().ok();
            let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|_| named);
            stem.map(str::to_owned).ok_or_else(|| Unsaved::NotNamed(file.clone()))
        }
    }
}

/// Reads the existing profile, which must be valid and plain JSON without comments.
fn existing(dir: &Path, name: &str, file: &Path, text: &str) -> Result<Map<String, Value>, Unsaved> {
    let not_ours = |why: String| Unsaved::NotOurs { file: file.to_path_buf(), why };
    ProfileStore::new(Some(dir.to_path_buf()))
        .load(&ProfileRef::Name(name.to_owned()))
        .map_err(|error| not_ours(error.to_string()))?;
    match serde_json::from_str(text) {
        Ok(Value::Object(profile)) => Ok(profile),
        // It is a profile, so it is JSON with comments.
        _ => Err(not_ours("it has comments, which would be lost".to_owned())),
    }
}

fn fresh(dir: &Path, name: &str, base: &str) -> Result<Map<String, Value>, Unsaved> {
    let commented = dir.join(format!("{name}.jsonc"));
    if commented.symlink_metadata().is_ok() {
        let why = "it may have comments, which would be lost".to_owned();
        return Err(Unsaved::NotOurs { file: commented, why });
    }
    let mut profile = Map::new();
    profile.insert("name".to_owned(), json!(name));
    profile.insert("description".to_owned(), json!("What was allowed while commands ran"));
    profile.insert("extends".to_owned(), json!(base));
    Ok(profile)
}

/// Adds a grant; false if it is there already. `None`: the profile has an unexpected form.
fn add(profile: &mut Map<String, Value>, grant: &Expansion) -> Option<bool> {
    let key = flag(grant).trim_start_matches("--").replace('-', "_");
    let path = grant.path.to_str()?;
    let filesystem = profile.entry("filesystem").or_insert_with(|| json!({})).as_object_mut()?;
    let list = filesystem.entry(key).or_insert_with(|| json!([])).as_array_mut()?;
    let there = |entry: &Value| entry == path || entry.get("path").is_some_and(|known| known == path);
    if list.iter().any(there) {
        return Some(false);
    }
    // Optional: a path that is gone next time must not refuse the run.
    list.push(json!({ "path": path, "optional": true }));
    Some(true)
}

/// Flag for a grant; a profile's list has the same name, written with `_`.
fn flag(grant: &Expansion) -> &'static str {
    grant_flag(grant.access, if grant.is_dir { GrantKind::Directory } else { GrantKind::File })
}

/// Replaces a file atomically.
fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    // Where it is a link, what it leads to is replaced.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let dir = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    let temporary = nono::temporary_beside(&file, ".tmp-")?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|mut out| out.write_all(text).and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&temporary, &file));
    if written.is_err() {
        // The error of the write is reported, not that of the cleanup.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use nono::AccessMode;

    use super::*;

    fn grant(path: &str, access: AccessMode, is_dir: bool) -> Expansion {
        Expansion { path: path.into(), access, is_dir, scope: Scope::Saved, by: "terminal".to_owned() }
    }

    fn kept(dir: &Path, used: Option<&str>, grants: &[Expansion]) -> Result<(String, usize), Unsaved> {
        let used = used.map(|name| ProfileRef::Name(name.to_owned()));
        keep(Some(dir), used.as_ref(), &grants.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_profile_is_made_added_to_and_used() {
        let dir = tempfile::tempdir().unwrap();
        let profiles = dir.path().join("profiles");
        let first =
            [grant("/etc/hostname", AccessMode::Read, false), grant("/opt", AccessMode::ReadWrite, true)];
        assert_eq!(kept(&profiles, None, &first).unwrap(), ("default-approved".to_owned(), 2));
        // What is there is not written twice, and the profile that was made takes the next one itself.
        let second = [first[0].clone(), grant("/var/x", AccessMode::Write, false)];
        let used = Some("default-approved");
        assert_eq!(kept(&profiles, used, &second).unwrap(), ("default-approved".to_owned(), 1));
        let store = ProfileStore::new(Some(profiles.clone()));
        let profile = store.load(&ProfileRef::Name("default-approved".to_owned())).unwrap();
        assert_eq!(profile.bases(), ["default"]);
        let entry = |path: &str| json!([{ "path": path, "optional": true }]);
        let filesystem = serde_json::to_value(&profile.filesystem).unwrap();
        assert_eq!(filesystem["read_file"], entry("/etc/hostname"));
        assert_eq!(filesystem["allow"], entry("/opt"));
        assert_eq!(filesystem["write_file"], entry("/var/x"));
        store.resolve(&ProfileRef::Name("default-approved".to_owned()), &[]).unwrap();
        let names: Vec<_> =
            fs::read_dir(&profiles).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["default-approved.json"]);
    }

    #[test]
    fn what_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mine-approved.json");
        fs::write(dir.path().join("mine.json"), r#"{"extends": "default"}"#).unwrap();
        fs::write(
            &file,
            r#"{"extends": "mine", "network": {"block": false}, "filesystem": {"read": ["/a"]}}"#,
        )
        .unwrap();
        kept(dir.path(), Some("mine"), &[grant("/b", AccessMode::Read, true)]).unwrap();
        let value: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(value["network"]["block"], false);
        assert_eq!(value["filesystem"]["read"][0], "/a");
        assert_eq!(value["filesystem"]["read"][1]["path"], "/b");
    }

    #[test]
    fn what_cannot_be_kept_as_it_is_is_not_touched() {
        for text in ["{ not json", "// why\n{\"extends\": \"default\"}\n", r#"{"unknown": 1}"#, "[]"] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("default-approved.json");
            fs::write(&file, text).unwrap();
            let error = kept(dir.path(), None, &[grant("/b", AccessMode::Read, true)]).unwrap_err();
            assert!(matches!(error, Unsaved::NotOurs { .. }), "{text}: {error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("default-approved.jsonc"), "{}").unwrap();
        kept(dir.path(), None, &[grant("/b", AccessMode::Read, true)]).unwrap_err();
        assert!(!dir.path().join("default-approved.json").exists());
    }

    #[test]
    fn a_file_elsewhere_has_no_name_to_build_on() {
        let dir = tempfile::tempdir().unwrap();
        let used = ProfileRef::File("/tmp/other.json".into());
        let wanted = grant("/b", AccessMode::Read, true);
        assert!(matches!(keep(Some(dir.path()), Some(&used), &[&wanted]), Err(Unsaved::NotNamed(_))));
        assert!(matches!(keep(None, None, &[&wanted]), Err(Unsaved::NoFolder)));
    }
}
