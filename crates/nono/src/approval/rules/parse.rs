//! Parsing of a policy file into rules; errors name the position.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nono_policy::AccessMode;
use nono_policy::error::Position;
use nono_policy::profile::read_listed;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ApprovalRule, Expiry, Globs, PolicyFileError, ProgramGlob, RuleAction, rfc3339};
use crate::approval::Scope;
use nono_policy::glob::{self, Pattern};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileText {
    rules: Vec<RuleText>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RuleText {
    path: String,
    action: ActionText,
    access: Option<AccessText>,
    program: Option<String>,
    scope: Option<ScopeText>,
    expires: Option<String>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ActionText {
    Allow,
    Deny,
    Ask,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AccessText {
    Read,
    Write,
    Readwrite,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ScopeText {
    Once,
    Session,
    Directory,
}

pub(super) fn parse(
    text: &str,
    file: &Path,
    home: Option<&Path>,
) -> Result<Vec<ApprovalRule>, PolicyFileError> {
    let (value, places) = read_listed::<FileText>(text, file, "the file", "rules")?;
    let rules = value.rules.into_iter().zip(places).enumerate();
    rules.map(|(index, (text, at))| Reading { text: &text, at, home }.rule(index + 1)).collect()
}

/// One rule while it is parsed.
struct Reading<'a> {
    text: &'a RuleText,
    at: Position,
    home: Option<&'a Path>,
}

impl Reading<'_> {
    fn rule(&self, number: usize) -> Result<ApprovalRule, PolicyFileError> {
        let text = self.text;
        let action = match text.action {
            ActionText::Allow => RuleAction::Allow(self.scope()?),
            ActionText::Deny => RuleAction::Deny,
            ActionText::Ask => RuleAction::Ask,
        };
        if text.scope.is_some() && !matches!(action, RuleAction::Allow(_)) {
            return Err(self.wrong("scope", "only \"allow\" has a scope; a denial holds for the session"));
        }
        Ok(ApprovalRule {
            number,
            line: self.at.line,
            path: self.globs("path", &text.path)?,
            access: text.access.map(|access| match access {
                AccessText::Read => AccessMode::Read,
                AccessText::Write => AccessMode::Write,
                AccessText::Readwrite => AccessMode::ReadWrite,
            }),
            program: text.program.as_deref().map(|program| self.program(program)).transpose()?,
            action,
            expires: text.expires.as_deref().map(|expires| self.expiry(expires)).transpose()?,
            reason: text.reason.clone(),
        })
    }

    /// The scope of an "allow". A session grant holds for every program, so a rule for one program answers each time.
    fn scope(&self) -> Result<Scope, PolicyFileError> {
        let named = self.text.program.is_some();
        match self.text.scope.or(named.then_some(ScopeText::Once)) {
            Some(ScopeText::Once) => Ok(Scope::Once),
            Some(_) if named => {
                Err(self.wrong("scope", "a session grant holds for every program; write \"once\""))
            }
            None | Some(ScopeText::Session) => Ok(Scope::Session),
            Some(ScopeText::Directory) if !self.text.path.ends_with("/**") => {
                Err(self.wrong("scope", "\"directory\" needs a path that ends with /**"))
            }
            Some(ScopeText::Directory) => Ok(Scope::Directory),
        }
    }

    fn expiry(&self, text: &str) -> Result<Expiry, PolicyFileError> {
        let seconds = rfc3339::seconds(text)
            .ok_or_else(|| self.wrong("expires", "write a time like 2027-01-31T18:00:00Z"))?;
        Ok(Expiry { text: text.to_owned(), seconds })
    }

    fn program(&self, text: &str) -> Result<ProgramGlob, PolicyFileError> {
        if text.is_empty() {
            return Err(self.wrong("program", "must not be empty"));
        }
        if text.contains('/') {
            return Ok(ProgramGlob::Path(self.globs("program", text)?));
        }
        let names = glob::expand(text.as_bytes()).map_err(|what| self.wrong("program", what))?;
        let names = names.iter().map(|name| Pattern::parse(std::iter::once(name.as_slice())));
        let patterns = names.collect::<Result<_, _>>().map_err(|what| self.wrong("program", what))?;
        Ok(ProgramGlob::Name(Globs { text: text.to_owned(), patterns }))
    }

    fn globs(&self, key: &'static str, text: &str) -> Result<Globs, PolicyFileError> {
        let absolute = self.absolute(key, text)?;
        let alternatives = glob::expand(&absolute).map_err(|what| self.wrong(key, what))?;
        let mut patterns = Vec::new();
        for one in &alternatives {
            let names: Vec<&[u8]> = one.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
            if names.iter().any(|name| *name == b"." || *name == b"..") {
                return Err(self.wrong(key, "must not contain . or .."));
            }
            self.check_links(key, &names)?;
            let pattern = Pattern::parse(names.into_iter()).map_err(|what| self.wrong(key, what))?;
            patterns.push(pattern);
        }
        Ok(Globs { text: text.to_owned(), patterns })
    }

    /// The pattern with the home folder replaced by its real path, escaped.
    fn absolute(&self, key: &'static str, text: &str) -> Result<Vec<u8>, PolicyFileError> {
        let (start, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
        if start.is_empty() {
            return Ok(text.as_bytes().to_vec());
        }
        if start != "~" && start != "$HOME" {
            return Err(self.wrong(key, "must begin with /, ~/ or $HOME/ (/**/ for anywhere)"));
        }
        let home = self.home.ok_or_else(|| self.wrong(key, "no home folder is known"))?;
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let mut absolute = Vec::new();
        for component in home.components() {
            if let Component::Normal(name) = component {
                absolute.push(b'/');
                absolute.extend(glob::literal(name.as_bytes()));
            }
        }
        absolute.extend(rest.as_bytes());
        Ok(absolute)
    }

    /// Refuse links: rules are compared with paths without links, so a pattern through a link would never match, and a
    /// "deny" would deny nothing. Nor must a link that can be changed decide what an "allow" means.
    fn check_links(&self, key: &'static str, names: &[&[u8]]) -> Result<(), PolicyFileError> {
        let mut path = PathBuf::from("/");
        for name in names {
            let Some(name) = plain(name) else { break };
            path.push(OsStr::from_bytes(&name));
            let is_link = path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
            if is_link {
                let real = path.canonicalize().unwrap_or_else(|_| PathBuf::from("nowhere"));
                return Err(PolicyFileError::Link { at: self.at.clone(), key, link: path, real });
            }
        }
        Ok(())
    }

    fn wrong(&self, key: &'static str, what: &'static str) -> PolicyFileError {
        PolicyFileError::Rule { at: self.at.clone(), key, what }
    }
}

/// The literal name that a pattern component matches; `None` if it has wildcards.
fn plain(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => plain.push(*bytes.next()?),
            byte if glob::is_special(&[*byte]) => return None,
            byte => plain.push(*byte),
        }
    }
    Some(plain)
}
