//! The profile that a project carries: shown, asked about once, and laid over what the flags say.

use std::path::Path;

use nono::diagnostic::{escape, shown};
use nono::project_profile::{self, ProjectProfileError, ProjectProfileHere, Standing};
use nono::session::Host;
use nono::{ProjectEntry, RunRequest};

use crate::args::{TrustArgs, here};
use crate::failure::Failure;
use crate::host::host;
use crate::message;

/// Maximum number of lines between the first and the question.
const BODY: usize = 8;
/// Where a line is long enough.
const WIDTH: usize = 96;

/// Whether a person can be asked about a profile that nobody agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Now,
    /// There was a question already.
    NextTime,
    /// Nothing is run, or nothing is to be said.
    No,
}

/// Lay the project's profile over the request: all of it where somebody agreed, else what it closes.
pub(super) fn apply(request: &mut RunRequest, host: &Host, asks: Asks) -> Result<(), Failure> {
    // Inside, the sandbox around has it, and nobody is there to agree to more.
    if host.nested {
        return Ok(());
    }
    let Some(mut project) = project_profile::look(&host.context).map_err(|error| failure(&error))? else {
        return Ok(());
    };
    if matches!(project.standing, Standing::New | Standing::Changed) && asks != Asks::No {
        let body = body(&project);
        if asks == Asks::Now && message::can_ask() && body.len() <= BODY {
            ask(&mut project, &body, host)?;
        } else {
            message::line(&not_used(&project, body.len() > BODY));
        }
    }
    request.projects = project.overlays(&host.context).map_err(|error| failure(&error))?;
    Ok(())
}

pub(super) fn failure(error: &ProjectProfileError) -> Failure {
    Failure::new(error.to_string()).hint(error.hint())
}

fn ask(project: &mut ProjectProfileHere, body: &[String], host: &Host) -> Result<(), Failure> {
    message::line(&headline(project));
    say(body);
    let agreed = message::confirm(&question(project));
    project.answer(&host.context.state_dir, agreed).map_err(|error| failure(&error))?;
    if !agreed {
        message::line(
            "not used, and not asked about again; what it closes is closed. `nono profile trust` asks",
        );
    }
    Ok(())
}

fn say(lines: &[String]) {
    for line in lines {
        message::line(line);
    }
}

fn headline(project: &ProjectProfileHere) -> String {
    let file = shown(project.file());
    if project.was_agreed() && project.standing == Standing::Changed {
        format!("{file} is not what you agreed to:")
    } else {
        format!("this project has a profile of its own, {file}:")
    }
}

fn question(project: &ProjectProfileHere) -> String {
    format!("Use it for commands in {}, as long as it says exactly this?", shown(project.root()))
}

fn not_used(project: &ProjectProfileHere, long: bool) -> String {
    let file = shown(project.file());
    let why = match (project.was_agreed(), long) {
        (true, _) => "it is not what you agreed to",
        (false, true) => "it opens more than fits here",
        (false, false) => "nobody agreed to it",
    };
    format!(
        "{file} is used only as far as it closes something: {why}; `nono profile trust` shows it, and asks"
    )
}

/// What it opens and closes; where something else was agreed to, what differs from that.
fn body(project: &ProjectProfileHere) -> Vec<String> {
    if !project.was_agreed() {
        return lines("", &project.meaning.entries());
    }
    let (added, removed) = project.differences();
    let mut body = lines("+ ", &added);
    body.extend(lines("- ", &removed));
    if body.is_empty() {
        body.push("  it opens and closes the same as before, in other words".to_owned());
    }
    body
}

/// Entries of the same kind in one line, as far as they fit.
fn lines(mark: &str, entries: &[ProjectEntry]) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for ProjectEntry { what, text } in entries {
        let text = escape(text);
        match lines.last_mut() {
            Some((last, line)) if last == what && line.len() + text.len() < WIDTH => {
                line.push_str(", ");
                line.push_str(&text);
            }
            _ => lines.push((what, text)),
        }
    }
    lines.into_iter().map(|(what, line)| format!("  {mark}{what:<8} {line}")).collect()
}

/// `nono profile trust`.
pub(super) fn trust(args: &TrustArgs) -> Result<u8, Failure> {
    let dir = args.dir.as_ref().map(|dir| Ok::<_, Failure>(here()?.join(dir))).transpose()?;
    let host = host(dir.as_deref())?;
    if host.nested {
        return Err(Failure::refused("nobody can agree to anything inside a sandbox")
            .hint("run it in a terminal outside"));
    }
    let looked = project_profile::look(&host.context);
    if args.forget {
        // What is there now may be broken; what was agreed to goes all the same.
        let root = match &looked {
            Ok(Some(project)) => project.root().to_owned(),
            _ => host.context.cwd.canonicalize().unwrap_or_else(|_| host.context.cwd.clone()),
        };
        return forget(&root, &host);
    }
    let project = looked.map_err(|error| failure(&error))?;
    let Some(mut project) = project else {
        let dir = shown(&host.context.cwd);
        return Err(Failure::refused(format!("{dir} is in no project with a profile of its own"))
            .hint("that would be .nono/profile.json in the project's folder"));
    };
    if args.show {
        let mut text = vec![format!("{} ({})", shown(project.file()), standing(project.standing))];
        text.extend(lines("", &project.meaning.entries()));
        text.push(format!("  sha256   {}", project.digest()));
        message::answer(&text.join("\n"))?;
        return Ok(0);
    }
    if project.standing.is_used() {
        message::answer(&format!("{}: {}", shown(project.file()), standing(project.standing)))?;
        return Ok(0);
    }
    if !message::can_ask() {
        return Err(Failure::refused("there is no terminal to ask on, so nothing was agreed to")
            .hint("--show shows what it opens"));
    }
    message::line(&headline(&project));
    // All of it, however long: this is the place for that.
    say(&lines("", &project.meaning.entries()));
    if project.was_agreed() {
        message::line("different from what you agreed to:");
        say(&body(&project));
    }
    let agreed = message::confirm(&question(&project));
    project.answer(&host.context.state_dir, agreed).map_err(|error| failure(&error))?;
    message::line(if agreed { "agreed" } else { "not used; what it closes is closed" });
    Ok(u8::from(!agreed))
}

fn forget(root: &Path, host: &Host) -> Result<u8, Failure> {
    let known = project_profile::forget(&host.context.state_dir, root).map_err(|error| failure(&error))?;
    let root = shown(root);
    message::answer(&if known {
        format!("forgotten: what was answered about the profile of {root}")
    } else {
        format!("nothing was answered about a profile of {root}")
    })?;
    Ok(0)
}

/// How a person stands to it, in words.
pub(super) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::ClosesOnly => "used; it only closes",
        Standing::Agreed => "used; you agreed to it",
        Standing::Declined => "you declined it; what it closes is closed",
        Standing::Changed => "not what you agreed to; what it closes is closed",
        Standing::New => "nobody agreed to it; what it closes is closed",
    }
}
