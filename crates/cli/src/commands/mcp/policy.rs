//! Tool `why`: about the sandbox around this process, or the one that a profile describes.

use std::path::{Path, PathBuf};

use nono::session::{self, Host};
use nono::{AccessMode, ProfileRef, ResolvedPolicy, RunRequest};

use super::answer::ToolAnswer;
use super::responses;
use crate::commands::why::{WhyAnswer, about_host, about_path, own_policy};
use crate::failure::Failure;

pub(super) fn of_path(
    host: &Host,
    path: &Path,
    operation: AccessMode,
    profile: Option<String>,
) -> Result<ToolAnswer, Failure> {
    let policy = policy(host, profile)?;
    Ok(told(about_path(&policy, &host.context.cwd, &at_home(host, path), operation).0))
}

pub(super) fn of_host(
    host: &Host,
    name: &str,
    port: Option<u16>,
    profile: Option<String>,
) -> Result<ToolAnswer, Failure> {
    Ok(told(about_host(&policy(host, profile)?, name, port)))
}

fn told(told: WhyAnswer) -> ToolAnswer {
    ToolAnswer::new(told.text, responses::harmless(told.json))
}

fn policy(host: &Host, profile: Option<String>) -> Result<ResolvedPolicy, Failure> {
    match profile {
        None if host.nested => own_policy(),
        Some(_) if host.nested => {
            Err(Failure::usage("inside a sandbox, why is about that sandbox: leave profile out"))
        }
        profile => {
            let mut request = RunRequest { profile: profile.map(ProfileRef::Name), ..RunRequest::default() };
            // Links that were not confirmed make the resolution fail.
            let profile = session::profile(&request, host)?;
            nono::links::recall(&mut request, &profile, host);
            Ok(session::resolve(&request, &profile, host)?)
        }
    }
}

/// Expands a leading `~`, as a shell would.
pub(super) fn at_home(host: &Host, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), &host.context.home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    }
}
