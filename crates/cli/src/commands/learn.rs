//! `nono learn`: runs a command, watches it, and proposes a profile.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use nono::diagnostic::{attempt_words, escape, quote_all, shown, words};
use nono::learn::{BaseFolders, Proposal, propose};
use nono::session::{self, Asking, Host, Learning, RunObserver, SessionReport, SessionRequest};
use nono::{DeniedAttempt, ExecStrategy, HostFacts, ProfileStore};

use super::{dry_run, links, profile, rollback_notices, run};
use crate::args::{LearnArgs, here};
use crate::failure::Failure;
use crate::host::host;
use crate::message;

pub(crate) fn learn(args: LearnArgs) -> Result<u8, Failure> {
    let LearnArgs { common, allow_all, save, command } = args;
    let host = host(common.policy.workdir.as_deref())?;
    if let Some(flag) = common.asking.given() {
        return Err(Failure::usage(format!(
            "{flag} cannot be used with learn, which never asks; leave {flag} out"
        )));
    }
    if host.nested {
        return Err(Failure::usage(
            "learn needs a supervisor, which it cannot start inside a sandbox; run it outside",
        ));
    }
    if let Some(name) = &save {
        let dir = host.profile_dir.as_deref().ok_or_else(Failure::no_home)?;
        profile::check_new_name(&ProfileStore::new(Some(dir.to_owned())), name, &profile_file(dir, name))?;
    }
    let mut request = common.request(&here()?)?;
    let networking = common.network.networking(&host, &here()?)?;
    networking.open(&mut request);
    // Stdout carries the proposal alone.
    let learning = Learning { allow_all, output_aside: save.is_none() };
    if common.dry_run {
        let at = (&host, common.policy.workdir.as_deref());
        return dry_run::show(&learning.applied(request), at, &command, ExecStrategy::Supervised);
    }
    let profile = session::profile(&request, &host)?;
    links::decide(&mut request, &profile, &host, &common)?;
    let program = command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let session = session::plan(
        SessionRequest {
            diagnostics: true,
            rollback: common.tracking.request(),
            auditing: common.auditing.request(),
            asking: Asking { accept_weaker: common.asking.accept_weaker, ..Asking::default() },
            learning: Some(learning),
            profile: Some(profile),
            network: networking,
            ..SessionRequest::new(request, command)
        },
        &host,
    )?;
    run::announce(&session, &host, ExecStrategy::Supervised, &common);
    if allow_all && !common.silent {
        warn(common.tracking.rollback());
    }
    let told: Arc<dyn RunObserver> = Arc::new(rollback_notices::TerminalObserver::new(&common));
    let mut report = session::run(session, &told)?;
    let code = run::conclude(&report, None, &common);
    let lesson = Lesson { host: &host, name: save.as_deref(), program: &program, allow_all };
    lesson.tell(&report, common.silent, common.verbose)?;
    if let Some(rollback) = report.rollback.take() {
        rollback_notices::conclude(rollback, &host, &common);
    }
    run::end_by_interrupt(&report);
    Ok(code)
}

fn warn(rollback: bool) {
    message::line(
        "warning: --allow-all: it may read and change everything that is not protected, and use the network",
    );
    message::line(if rollback {
        "hint: only what it changes in the working directory can be undone"
    } else {
        "hint: with --rollback, what it changes in the working directory can be undone"
    });
}

fn profile_file(dir: &Path, name: &str) -> std::path::PathBuf {
    dir.join(format!("{name}.json"))
}

/// Report on a watched run.
struct Lesson<'a> {
    host: &'a Host,
    name: Option<&'a str>,
    program: &'a str,
    allow_all: bool,
}

impl Lesson<'_> {
    fn tell(&self, report: &SessionReport, silent: bool, verbose: bool) -> Result<(), Failure> {
        let Some(learned) = &report.learned else { return Ok(()) };
        let home = self.host.context.home.as_ref();
        let places = BaseFolders {
            home: home.map(|home| home.canonicalize().unwrap_or_else(|_| home.clone())),
            workdir: learned.base.workdir.clone(),
        };
        let name = Path::new(self.program).file_name().unwrap_or_default().to_string_lossy();
        let description = format!("What {name} used when it was watched");
        let proposal = propose(self.name, &description, learned, &report.policy, &places, &HostFacts);
        if !silent {
            let most = if verbose { usize::MAX } else { MOST };
            for line in (Summary { proposal: &proposal, report, places: &places, most }).lines() {
                message::line(&line);
            }
            if !self.allow_all && !proposal.denied.is_empty() {
                message::line(
                    "hint: denials may have stopped it early; --allow-all shows what it would do next",
                );
            }
        }
        self.hand_out(&proposal, silent)
    }

    fn hand_out(&self, proposal: &Proposal, silent: bool) -> Result<(), Failure> {
        let (Some(name), Some(dir)) = (self.name, self.host.profile_dir.as_deref()) else {
            message::answer_json(&proposal.profile)?;
            return Ok(());
        };
        let file = profile_file(dir, name);
        let text = serde_json::to_string_pretty(&proposal.profile).map_err(std::io::Error::from)?;
        profile::write_new(&file, &(text + "\n"))?;
        if !silent {
            let again = quote_all(&[self.program.to_owned()]);
            message::line(&format!(
                "saved as {}; read it, then use it with: nono run -p {name} -- {again}",
                shown(&file)
            ));
        }
        Ok(())
    }
}

/// Maximum number of entries of each kind without `-v`.
const MOST: usize = 12;

struct Summary<'a> {
    proposal: &'a Proposal,
    report: &'a SessionReport,
    places: &'a BaseFolders,
    most: usize,
}

impl Summary<'_> {
    fn lines(&self) -> Vec<String> {
        let Proposal { grants, denied, reached, bound, executed, unrecorded, .. } = self.proposal;
        let file_name = |path: &std::path::PathBuf| shown(path.file_name().map_or(path, Path::new));
        let started: BTreeSet<String> = executed.iter().map(file_name).collect();
        let mut lines = Vec::new();
        self.list(&mut lines, "it started:", started.into_iter().collect());
        let grant = |grant: &nono::learn::Proposed| {
            let below = if grant.is_dir { " and everything in it" } else { "" };
            format!("{} {}{below}", grant.access, self.written(&grant.path))
        };
        self.list(&mut lines, "it used, beyond what its profile opens:", grants.iter().map(grant).collect());
        let denied = denied.iter().map(|(path, access)| format!("{access} {}", self.written(path)));
        self.list(&mut lines, "it was denied in this run:", denied.collect());
        self.list(&mut lines, "not proposed:", self.not_proposed());
        let connected = reached.iter().map(|(reached, count)| {
            let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
            format!("connect to {}{times}", escape(&reached.address))
        });
        let listened = bound.iter().filter(|port| **port != 0).map(|port| format!("listen on port {port}"));
        self.list(&mut lines, "network:", connected.chain(listened).collect());
        if *unrecorded > 0 {
            lines.push(format!("too many calls to record: {unrecorded} are missing here"));
        }
        lines
    }

    fn not_proposed(&self) -> Vec<String> {
        let Proposal { closed, too_wide, left_out, .. } = self.proposal;
        let mut lines = Vec::new();
        for closed in closed {
            let mut line =
                format!("{} {}: {}", closed.access, self.written(&closed.path), words(&closed.reason));
            if !closed.flags.is_empty() {
                // Writing to a String cannot fail.
                let _ = write!(line, "; it needs {}", quote_all(&closed.flags));
            }
            lines.push(line);
        }
        lines.extend(too_wide.iter().map(|(path, access)| {
            format!("{access} {}: that would open everything in it", self.written(path))
        }));
        lines.extend(
            left_out.iter().map(|path| format!("{}: its name cannot be written in a profile", shown(path))),
        );
        let sockets = self.report.findings.denials.iter().filter(|denial| !denial.probe);
        lines.extend(sockets.filter(|denial| matches!(denial.attempt, DeniedAttempt::Socket { .. })).map(
            |denial| format!("{}; it needs {}", attempt_words(&denial.attempt), quote_all(&denial.flags)),
        ));
        lines
    }

    fn list(&self, lines: &mut Vec<String>, title: &str, entries: Vec<String>) {
        if entries.is_empty() {
            return;
        }
        lines.push(title.to_owned());
        let more = entries.len().saturating_sub(self.most);
        lines.extend(entries.into_iter().take(self.most).map(|entry| format!("  {entry}")));
        if more > 0 {
            lines.push(format!("  and {more} more (-v lists them)"));
        }
    }

    fn written(&self, path: &Path) -> String {
        self.places.written(path).map_or_else(|| shown(path), |text| escape(&text))
    }
}
