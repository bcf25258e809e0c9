//! Store of profiles: the built-in ones and the files of one folder.
//!
//! Built-in names are reserved: a file that takes one is an error rather than a silent replacement of a policy
//! people know by that name. A name is checked before it becomes part of a path, so it can never lead out of the
//! folder. Files are read whole, up to a limit, and only when they are regular.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::builtin::{self, BUILT_IN};
use super::merge::MergedProfile;
use super::{Profile, parse};
use crate::data::{GroupKind, PolicyData};
use crate::error::{ExtendedBy, ProfileError, nearest};
use crate::request::ProfileRef;

const MAX_BYTES: u64 = 1 << 20;
const ENDINGS: [&str; 2] = ["json", "jsonc"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileOrigin {
    Builtin,
    User(#[serde(with = "crate::path_serde")] PathBuf),
}

/// One line of `profile list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileInfo {
    pub name: String,
    pub description: Option<String>,
    pub source: ProfileOrigin,
    pub extends: Vec<String>,
    /// Reason why the file cannot be used, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The built-in profiles and those of the user's folder, if there is one.
#[derive(Clone, Debug, Default)]
pub struct ProfileStore {
    user_dir: Option<PathBuf>,
}

impl ProfileStore {
    pub fn new(user_dir: Option<PathBuf>) -> ProfileStore {
        ProfileStore { user_dir }
    }

    /// Every profile there is, built-in first, then the user's by name. A broken file is listed with its error.
    pub fn list(&self) -> Vec<ProfileInfo> {
        let builtin = BUILT_IN.iter().map(|(name, _)| (*name).to_owned());
        let named = |path: PathBuf| Some((path.file_stem()?.to_str()?.to_owned(), path));
        let user = self.user_files().into_iter().filter_map(named);
        builtin
            .map(|name| Self::info(name, ProfileOrigin::Builtin))
            .chain(user.map(|(name, path)| Self::info(name, ProfileOrigin::User(path))))
            .collect()
    }

    fn info(name: String, source: ProfileOrigin) -> ProfileInfo {
        let loaded = match &source {
            ProfileOrigin::Builtin => parse::parse_built_in(builtin::text(&name).unwrap_or_default(), &name),
            ProfileOrigin::User(path) if builtin::text(&name).is_some() => {
                Err(ProfileError::ReservedName { path: path.clone(), name: name.clone() })
            }
            ProfileOrigin::User(path) => user_file(path, &name),
        };
        match loaded {
            Ok(profile) => {
                let extends = profile.bases().to_vec();
                ProfileInfo { name, description: profile.description, source, extends, error: None }
            }
            Err(error) => ProfileInfo {
                name,
                description: None,
                source,
                extends: vec![],
                error: Some(error.to_string()),
            },
        }
    }

    /// One profile as it is written, without what it extends.
    pub fn load(&self, wanted: &ProfileRef) -> Result<Profile, ProfileError> {
        self.load_named(wanted).map(|(_, profile)| profile)
    }

    /// A profile with everything it extends, `extra_extends` laid between its own bases and itself.
    pub fn resolve(
        &self,
        wanted: &ProfileRef,
        extra_extends: &[String],
    ) -> Result<MergedProfile, ProfileError> {
        let (name, profile) = self.load_named(wanted)?;
        self.merge(&name, &profile, extra_extends)
    }

    /// A profile that was read already, with everything it extends.
    pub(super) fn merge(
        &self,
        name: &str,
        profile: &Profile,
        extra_extends: &[String],
    ) -> Result<MergedProfile, ProfileError> {
        let mut merged = MergedProfile::default();
        let mut open = vec![name.to_owned()];
        for base in profile.bases() {
            self.absorb_base(base, ExtendedBy::Profile(name.to_owned()), &mut merged, &mut open)?;
        }
        for base in extra_extends {
            self.absorb_base(base, ExtendedBy::Flag, &mut merged, &mut open)?;
        }
        if !merged.chain.iter().any(|known| known == name) {
            merged.absorb(name, profile);
        }
        check_groups(&merged)?;
        Ok(merged)
    }

    /// Checks a file in full: its text, its bases and its groups. Its name may be anything that is not reserved.
    pub fn validate(&self, path: &Path) -> Result<MergedProfile, ProfileError> {
        self.resolve(&ProfileRef::File(path.to_path_buf()), &[])
    }

    fn absorb_base(
        &self,
        name: &str,
        by: ExtendedBy,
        merged: &mut MergedProfile,
        open: &mut Vec<String>,
    ) -> Result<(), ProfileError> {
        if open.iter().any(|known| known == name) {
            let chain = open.iter().cloned().chain([name.to_owned()]).collect();
            return Err(ProfileError::Cycle { chain });
        }
        if merged.chain.iter().any(|known| known == name) {
            return Ok(());
        }
        let profile = self.named(name, Some(by))?;
        open.push(name.to_owned());
        for base in profile.bases() {
            self.absorb_base(base, ExtendedBy::Profile(name.to_owned()), merged, open)?;
        }
        open.pop();
        merged.absorb(name, &profile);
        Ok(())
    }

    fn load_named(&self, wanted: &ProfileRef) -> Result<(String, Profile), ProfileError> {
        match wanted {
            ProfileRef::Name(name) => Ok((name.clone(), self.named(name, None)?)),
            ProfileRef::File(path) => {
                let profile = read_file(path)?;
                let stem =
                    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                let name = profile.name.clone().unwrap_or(stem);
                check_name(&name)?;
                check_reserved(&name, path)?;
                Ok((name, profile))
            }
        }
    }

    fn named(&self, name: &str, extended_by: Option<ExtendedBy>) -> Result<Profile, ProfileError> {
        check_name(name)?;
        let user = self.user_path(name);
        if let Some(text) = builtin::text(name) {
            return match user {
                Some(path) => Err(ProfileError::ReservedName { path, name: name.to_owned() }),
                None => parse::parse_built_in(text, name),
            };
        }
        match user {
            Some(path) => user_file(&path, name),
            None => Err(self.unknown(name, extended_by)),
        }
    }

    fn user_path(&self, name: &str) -> Option<PathBuf> {
        let dir = self.user_dir.as_ref()?;
        ENDINGS
            .iter()
            .map(|ending| dir.join(format!("{name}.{ending}")))
            .find(|path| path.symlink_metadata().is_ok())
    }

    fn user_files(&self) -> Vec<PathBuf> {
        let entries = self.user_dir.as_ref().and_then(|dir| fs::read_dir(dir).ok());
        let mut files: Vec<_> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known)))
            .filter(|path| path.file_stem().is_some_and(|stem| stem.to_str().is_some()))
            .collect();
        files.sort();
        files
    }

    fn unknown(&self, name: &str, extended_by: Option<ExtendedBy>) -> ProfileError {
        let files = self.user_files();
        let user = files.iter().filter_map(|path| path.file_stem()?.to_str());
        let nearest = nearest(name, BUILT_IN.iter().map(|(known, _)| *known).chain(user));
        ProfileError::Unknown { name: name.to_owned(), extended_by, nearest }
    }
}

fn user_file(path: &Path, name: &str) -> Result<Profile, ProfileError> {
    check_name(name)?;
    check_reserved(name, path)?;
    let profile = read_file(path)?;
    match &profile.name {
        Some(own) if own != name => {
            let (name, expected) = (own.clone(), name.to_owned());
            Err(ProfileError::NameMismatch { path: path.to_path_buf(), name, expected })
        }
        _ => Ok(profile),
    }
}

fn read_file(path: &Path) -> Result<Profile, ProfileError> {
    let unreadable = |source| ProfileError::Read { path: path.to_path_buf(), source };
    let file = nono_sys::fs::open_regular(path).map_err(unreadable)?;
    let file = file.ok_or_else(|| ProfileError::NotAFile { path: path.to_path_buf() })?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ProfileError::TooLarge { path: path.to_path_buf(), limit: MAX_BYTES });
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())))?;
    parse::parse(&text, path)
}

fn check_name(name: &str) -> Result<(), ProfileError> {
    let fine = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if fine { Ok(()) } else { Err(ProfileError::BadName { name: name.to_owned() }) }
}

fn check_reserved(name: &str, path: &Path) -> Result<(), ProfileError> {
    match builtin::text(name) {
        Some(_) => Err(ProfileError::ReservedName { path: path.to_path_buf(), name: name.to_owned() }),
        None => Ok(()),
    }
}

fn check_groups(merged: &MergedProfile) -> Result<(), ProfileError> {
    let data = PolicyData::embedded();
    let profile = merged.name().to_owned();
    for name in merged.groups.include.iter().chain(&merged.groups.exclude) {
        let Some(group) = data.group(name) else {
            let nearest = nearest(name, data.groups.iter().map(|group| group.name.as_str()));
            return Err(ProfileError::UnknownGroup { profile, group: name.clone(), nearest });
        };
        if group.kind == GroupKind::Protected && merged.groups.exclude.contains(name) {
            return Err(ProfileError::ProtectedGroupExcluded { profile, group: name.clone() });
        }
    }
    Ok(())
}
