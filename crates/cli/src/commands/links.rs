//! Symbolic links in typed paths: shown with their targets and confirmed before anything is granted through them.

use std::fs::File;
use std::path::{Path, PathBuf};

use nono::diagnostic::shown;
use nono::links;
use nono::session::Host;
use nono::{MergedProfile, RunRequest, TypedLink};

use crate::args::{CommonArgs, here};
use crate::failure::{Failure, words as words_of};
use crate::message;

/// Asks once about every typed path that a link leads elsewhere; refuses without a terminal.
pub(super) fn decide(
    request: &mut RunRequest,
    profile: &MergedProfile,
    host: &Host,
    common: &CommonArgs,
) -> Result<(), Failure> {
    let mut doubtful = doubtful(request, profile, host, common.policy.workdir.as_deref())?;
    if let Some(dir) = common.tracking.dest() {
        doubtful.extend(followed(dir, Some(host))?.1);
    }
    let can_ask = message::can_ask() && !common.silent;
    for typed in doubtful {
        if !can_ask {
            return Err(Failure::new(words(&typed)).hint(instead(&typed)));
        }
        message::line(&words(&typed));
        if !message::confirm(&format!("Follow it to {}, now and later?", shown(&typed.way.end))) {
            return Err(Failure::new("nothing was run: the link was not confirmed").hint(instead(&typed)));
        }
        if let Err(error) = links::agree(&host.context.state_dir, &typed.way.escaping_links) {
            message::line(&format!("warning: your answer was not saved: {error}"));
        }
        request.links.extend(typed.way.escaping_links);
    }
    Ok(())
}

/// Links that were not confirmed yet, in grants and in the working directory of the command.
fn doubtful(
    request: &mut RunRequest,
    profile: &MergedProfile,
    host: &Host,
    workdir: Option<&Path>,
) -> Result<Vec<TypedLink>, Failure> {
    let mut doubtful = links::recall(request, profile, host);
    if let Some(dir) = workdir {
        let (end, typed) = followed(dir, Some(host))?;
        // The question must be about the directory in which the command starts.
        if end != host.context.cwd {
            return Err(Failure::new(format!("--workdir {}: it changed while nono read it", shown(dir))));
        }
        doubtful.extend(typed);
    }
    Ok(doubtful)
}

/// Path at which to write a file; an error if a link leads there that a command could have made.
pub(super) fn place(file: &Path, host: Option<&Host>) -> Result<PathBuf, Failure> {
    let (end, doubtful) = followed(file, host)?;
    match doubtful {
        None => Ok(end),
        Some(typed) => Err(Failure::refused(words(&typed))
            .hint(format!("use {} itself if that is meant, or remove the link", shown(&typed.way.end)))),
    }
}

/// Creates a file for writing.
pub(super) fn create(file: &Path, host: Option<&Host>, mode: u32) -> Result<File, Failure> {
    let place = place(file, host)?;
    links::create(file, &place, mode).map_err(|error| Failure::cannot("create", file, &error))
}

fn followed(path: &Path, host: Option<&Host>) -> Result<(PathBuf, Option<TypedLink>), Failure> {
    let path: PathBuf = here()?.join(path).components().collect();
    links::look(&path, host).map_err(|error| Failure::new(format!("{}: {}", shown(&path), words_of(&error))))
}

/// Treats all links as confirmed, for commands that only show the policy; returns those that a run would ask about.
pub(super) fn suppose(
    request: &mut RunRequest,
    profile: &MergedProfile,
    host: &Host,
    workdir: Option<&Path>,
) -> Result<Vec<TypedLink>, Failure> {
    let doubtful = doubtful(request, profile, host, workdir)?;
    request.links.extend(doubtful.iter().flat_map(|typed| typed.way.escaping_links.clone()));
    Ok(doubtful)
}

/// Sentence about where a typed path leads, and through which links.
pub(super) fn words(typed: &TypedLink) -> String {
    let links: Vec<String> = typed.way.escaping_links.iter().map(|one| shown(&one.link)).collect();
    let (path, end) = (shown(&typed.path), shown(&typed.way.end));
    let leads = if links == [path.as_str()] {
        format!("{path} is a link that leads to {end}")
    } else {
        format!("{path} leads to {end} through the link {}", links.join(" and "))
    };
    format!("{leads}, out of its folder; a command could have made it (given by {})", typed.source)
}

fn instead(typed: &TypedLink) -> String {
    format!("use {} instead if that is meant, or confirm the link once on a terminal", shown(&typed.way.end))
}
