//! `nono setup`: shows and tries what this machine can enforce.

use std::path::Path;

use nono::session::{self, SessionFolder, check};
use nono::{Canary, ExecStrategy, GuaranteeState, Namespaces, Sandbox, SandboxSupport, guarantees};
use serde_json::{Value, json};

use crate::args::SetupArgs;
use crate::failure::{Failure, words};
use crate::host::host;
use crate::message;

/// Features that each Landlock ABI added.
const ABIS: &[(u32, &str)] = &[
    (1, "files: read, write, execute, create, remove"),
    (2, "renaming and linking between folders"),
    (3, "truncating (needed)"),
    (4, "TCP ports"),
    (5, "device controls"),
    (6, "signals and abstract sockets stay inside"),
    (7, "audit records of denials"),
    (8, "all threads of a process at once"),
];

pub(crate) fn setup(args: &SetupArgs) -> Result<u8, Failure> {
    let host = host(None)?;
    let support = Sandbox::support();
    let canary = if host.nested {
        Err(Failure::new("already inside a nono sandbox"))
    } else {
        try_canary(&support, &host)
    };
    let held = matches!(&canary, Ok(canary) if canary.held());
    message::answer_either(args.json, || as_json(&support, &canary), || as_text(&support, &canary))?;
    if !args.check_only && !host.nested {
        let made = prepare(&host, &support, held)?;
        if !args.json {
            message::answer(&made)?;
        }
    }
    Ok(u8::from(!held))
}

fn try_canary(support: &SandboxSupport, host: &session::Host) -> Result<Canary, Failure> {
    let folder = SessionFolder::create(&host.session_base).map_err(|error| Failure::new(words(&error)))?;
    check::try_canary(support, &folder).map_err(|error| Failure::new(error.to_string()))
}

/// Creates nono's folders and records a canary that held. Returns lines that name the folders.
fn prepare(host: &session::Host, support: &SandboxSupport, held: bool) -> Result<String, Failure> {
    let at = |path: &Path| {
        let path = nono::diagnostic::shown(path);
        move |error: std::io::Error| Failure::new(format!("cannot write {path}: {}", words(&error)))
    };
    let mut lines = Vec::new();
    let state = &host.context.state_dir;
    nono::state_dir::ensure(state)?;
    if let Some(dir) = &host.profile_dir {
        std::fs::create_dir_all(dir).map_err(at(dir))?;
        lines.push(format!("profiles: {}", nono::diagnostic::shown(dir)));
    }
    if held {
        check::remember(state, host.context.binary.as_deref(), support).map_err(at(state))?;
    }
    lines.push(format!("state: {}", nono::diagnostic::shown(state)));
    Ok(lines.join("\n"))
}

fn as_text(support: &SandboxSupport, canary: &Result<Canary, Failure>) -> String {
    let mut lines = vec![format!("kernel: {}", support.kernel)];
    match &support.landlock {
        Ok(abi) => {
            lines.push(format!("landlock: ABI {abi}"));
            for (level, what) in ABIS {
                lines.push(format!("  {} ABI {level}: {what}", if level <= abi { "+" } else { "-" }));
            }
        }
        Err(reason) => lines.push(format!("landlock: missing, {reason}")),
    }
    let yes_no = |yes| if yes { "available" } else { "missing" };
    lines.push(format!("seccomp user notification: {}", yes_no(support.seccomp_notify)));
    match &support.notify {
        Ok(notify) => {
            let mark = |yes| if yes { "+" } else { "-" };
            lines.push("  + trapped calls can be answered with descriptors (5.14): --ask works".to_owned());
            lines.push(format!(
                "  {} signals do not interrupt a call that waits for its answer (5.19)",
                mark(notify.wait_killable)
            ));
            lines.push(format!(
                "  {} caller and supervisor run on one processor in turn, which is faster (6.6)",
                mark(notify.sync_wake_up)
            ));
        }
        Err(reason) => {
            lines.push(format!("  - no trapped calls, no --ask: {}", nono::diagnostic::escape(reason)));
        }
    }
    lines.push(match &support.namespaces {
        Namespaces::Available { user: true } => "namespaces: available, through a user namespace".to_owned(),
        Namespaces::Available { user: false } => "namespaces: available, as root".to_owned(),
        none @ (Namespaces::Missing { .. } | Namespaces::Nested) => {
            format!("namespaces: missing, {}", none.missing().unwrap_or_default())
        }
    });
    lines.push(match support.ptrace_scope {
        Some(scope) => format!("ptrace scope: {scope}"),
        None => "ptrace scope: no Yama; Landlock keeps debuggers inside".to_owned(),
    });
    lines.push(format!("canary: {}", canary_words(canary)));
    for (title, strategy) in [("run", ExecStrategy::Supervised), ("wrap", ExecStrategy::Direct)] {
        lines.push(format!("what `nono {title}` holds here:"));
        for guarantee in guarantees() {
            let (mark, how) = held_words(guarantee.here(support, strategy));
            lines.push(format!("  {mark} {}: {how}", guarantee.what));
        }
    }
    lines.push("where `nono run --monitor` holds less than `nono run`:".to_owned());
    for guarantee in guarantees() {
        let monitored = guarantee.here(support, ExecStrategy::Monitor);
        if monitored != guarantee.here(support, ExecStrategy::Supervised) {
            let (mark, how) = held_words(monitored);
            lines.push(format!("  {mark} {}: {how}", guarantee.what));
        }
    }
    lines.join("\n")
}

fn held_words(held: GuaranteeState) -> (&'static str, &'static str) {
    match held {
        GuaranteeState::By(how) => ("closed ", how),
        GuaranteeState::Open(what) => ("OPEN   ", what),
        GuaranteeState::Refused(how) => ("refused", how),
    }
}

fn canary_words(canary: &Result<Canary, Failure>) -> String {
    match canary {
        Err(error) => format!("not tried: {}", error.sentence()),
        Ok(canary) if canary.held() => {
            "a sandboxed child tried to read and to write outside, and could do neither".to_owned()
        }
        Ok(canary) => format!(
            "FAILED: a sandboxed child {}",
            match (canary.read, canary.wrote) {
                (true, true) => "could read and write outside",
                (true, false) => "could read outside",
                (false, true) => "could write outside",
                (false, false) => "ended in an unexpected way",
            }
        ),
    }
}

fn as_json(support: &SandboxSupport, canary: &Result<Canary, Failure>) -> Value {
    let table = |strategy| -> Vec<Value> {
        guarantees()
            .iter()
            .map(|guarantee| {
                let (mark, how) = held_words(guarantee.here(support, strategy));
                json!({"what": guarantee.what, "status": mark.trim().to_lowercase(), "how": how})
            })
            .collect()
    };
    json!({
        "kernel": support.kernel,
        "landlock_abi": support.landlock.as_ref().ok(),
        "seccomp_notify": support.seccomp_notify,
        "notify": support.notify.as_ref().ok(),
        "notify_missing": support.notify.as_ref().err(),
        "namespaces": matches!(support.namespaces, Namespaces::Available { .. }),
        "ptrace_scope": support.ptrace_scope,
        "canary_held": matches!(canary, Ok(canary) if canary.held()),
        "canary": canary_words(canary),
        "run": table(ExecStrategy::Supervised),
        "wrap": table(ExecStrategy::Direct),
        "monitor": table(ExecStrategy::Monitor),
    })
}
