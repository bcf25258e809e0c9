//! Profile that a project carries: shown, confirmed once, and applied on top of the flags.

use std::path::Path;

use nono::diagnostic::{escape, shown};
use nono::project_profile::{self, ProjectProfileHere, Standing};
use nono::session::Host;
use nono::{ProjectEntry, RunRequest};

use crate::args::{TrustArgs, here};
use crate::failure::Failure;
use crate::host::host;
use crate::message;

/// Maximum number of lines between the headline and the question.
const BODY: usize = 8;
/// Width from which entries go to the next line.
const WIDTH: usize = 96;

/// Whether to ask about a profile that the user has not agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProfileQuestion {
    Now,
    /// Not now: another question was asked at this start.
    NextTime,
    /// Nothing is run, or output is silenced.
    No,
}

/// Applies the project's profile to the request: all of it if the user agreed, else only its denials.
pub(super) fn apply(request: &mut RunRequest, host: &Host, asks: ProfileQuestion) -> Result<(), Failure> {
    // The sandbox around has applied it, and the user cannot be asked here.
    if host.nested {
        return Ok(());
    }
    let Some(mut project) = project_profile::look(&host.context)? else {
        return Ok(());
    };
    if matches!(project.standing, Standing::New | Standing::Changed) && asks != ProfileQuestion::No {
        let body = body(&project);
        if asks == ProfileQuestion::Now && message::can_ask() && body.len() <= BODY {
            ask(&mut project, &body, host)?;
        } else {
            message::line(&not_used(&project, body.len() > BODY));
        }
    }
    request.projects = project.overlays(&host.context)?;
    Ok(())
}

fn ask(project: &mut ProjectProfileHere, body: &[String], host: &Host) -> Result<(), Failure> {
    message::line(&headline(project));
    say(body);
    let agreed = message::confirm(&question(project));
    project.answer(&host.context.state_dir, agreed)?;
    if !agreed {
        message::line(
            "its grants are not used, only its restrictions; run `nono profile trust` to be asked again",
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
        format!("{file} changed since you agreed to it:")
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
        (true, _) => "it changed since you agreed to it",
        (false, true) => "it grants more than can be listed here",
        (false, false) => "you have not agreed to it",
    };
    format!(
        "the grants of {file} are not used, only its restrictions: {why}; run `nono profile trust` to review it"
    )
}

/// What the profile opens and closes; if an earlier version was agreed to, the differences from it.
fn body(project: &ProjectProfileHere) -> Vec<String> {
    if !project.was_agreed() {
        return lines("", &project.meaning.entries());
    }
    let (added, removed) = project.differences();
    let mut body = lines("+ ", &added);
    body.extend(lines("- ", &removed));
    if body.is_empty() {
        body.push("  it opens and closes the same as before; only its text differs".to_owned());
    }
    body
}

/// Lines of entries, with those of one kind joined as far as they fit.
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

/// Runs `nono profile trust`.
pub(super) fn trust(args: &TrustArgs) -> Result<u8, Failure> {
    let dir = args.dir.as_ref().map(|dir| Ok::<_, Failure>(here()?.join(dir))).transpose()?;
    let host = host(dir.as_deref())?;
    if host.nested {
        return Err(Failure::refused("`nono profile trust` does not work inside a sandbox")
            .hint("run it in a terminal outside"));
    }
    let looked = project_profile::look(&host.context);
    if args.forget {
        // The profile may be broken now; the answer is forgotten all the same.
        let root = match &looked {
            Ok(Some(project)) => project.root().to_owned(),
            _ => host.context.cwd.canonicalize().unwrap_or_else(|_| host.context.cwd.clone()),
        };
        return forget(&root, &host);
    }
    let Some(mut project) = looked? else {
        let dir = shown(&host.context.cwd);
        return Err(Failure::refused(format!("{dir} is not in a project that has a profile"))
            .hint("a project's profile is .nono/profile.json in its folder"));
    };
    if args.show {
        let mut text = vec![format!("{} ({})", shown(project.file()), standing(project.standing))];
        text.extend(lines("", &project.meaning.entries()));
        text.push(format!("  sha256   {}", project.digest()));
        return message::answer(&text.join("\n"));
    }
    if project.standing.is_used() {
        return message::answer(&format!("{}: {}", shown(project.file()), standing(project.standing)));
    }
    if !message::can_ask() {
        return Err(Failure::refused("not agreed to: there is no terminal to ask on")
            .hint("--show shows what it opens"));
    }
    message::line(&headline(&project));
    // All of it, however long.
    say(&lines("", &project.meaning.entries()));
    if project.was_agreed() {
        message::line("changed since you agreed to it:");
        say(&body(&project));
    }
    let agreed = message::confirm(&question(&project));
    project.answer(&host.context.state_dir, agreed)?;
    message::line(if agreed { "agreed" } else { "its grants are not used, only its restrictions" });
    Ok(u8::from(!agreed))
}

fn forget(root: &Path, host: &Host) -> Result<u8, Failure> {
    let known = project_profile::forget(&host.context.state_dir, root)?;
    let root = shown(root);
    message::answer(&if known {
        format!("forgot your answer about the profile of {root}")
    } else {
        format!("you have given no answer about a profile of {root}")
    })
}

/// State of the user's agreement, in words.
pub(super) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::ClosesOnly => "used; it only restricts",
        Standing::Agreed => "used; you agreed to it",
        Standing::Declined => "you declined it; only its restrictions are used",
        Standing::Changed => "changed since you agreed to it; only its restrictions are used",
        Standing::New => "you have not agreed to it; only its restrictions are used",
    }
}
