//! `nono hook`: called by agents. It answers in the agent's format and always exits with 0: an agent may take any other
//! code as a decision to block its tool.
//!
//! Failures: a payload that is missing, too long or not JSON is reported (and before a tool, everything here is
//! checkpointed); an error is part of the answer; a panic in the thread that judges a command line stops only that
//! thread, for which the main thread waits a limited time; any other panic prints a fixed answer and exits with 0, also
//! in builds where a panic aborts.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::panic;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use nono::checkpoints::{CheckpointManager, Config, Host, settings};
use nono::hooks::agents;
use nono::hooks::backend::{Backend, ErrorText, Local, Remote};
use nono::hooks::denial::Sandbox;
use nono::hooks::run::{self, Context, Handled, SandboxAround};
use nono::hooks::{HookEvent, HookPayload, HookReply, slash_command};
use nono::{SandboxState, state_dir};
use serde_json::Value;

use super::upkeep;
use crate::host::{asks, author, cap_file, home, request_socket, state_home};

/// Maximum size of a payload.
const LONGEST: u64 = 16 << 20;

/// Whether these are the arguments of `nono hook`, complete or not, but without a request for help.
pub(crate) fn is_hook(args: &[OsString]) -> bool {
    args.first().is_some_and(|first| first == "hook")
        && !args.iter().any(|arg| arg == "--help" || arg == "-h" || arg == "help")
}

/// Handles a call. `args`: the arguments after `hook`.
pub(crate) fn hook(args: &[OsString]) {
    let text = |at: usize| args.get(at).map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    let (agent, event) = (text(0), text(1));
    survive_panics(&agent, &event);
    let handled = answer(&agent, &event);
    say(&agents::answer(&agent, &event, &handled.reply));
    if handled.short || !handled.taken.is_empty() {
        upkeep::after_hook(&handled.taken);
    }
}

/// Prints the answer. A closed stdout is ignored.
fn say(answer: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{answer}").and_then(|()| stdout.flush());
}

/// Installs a panic hook that answers and exits; it runs before the release build aborts.
fn survive_panics(agent: &str, event: &str) {
    let reply = HookReply::message("nono: the hook failed; this call has no checkpoint");
    let last_words = agents::answer(agent, event, &reply);
    let main = thread::current().id();
    panic::set_hook(Box::new(move |_| {
        if thread::current().id() == main {
            say(&last_words);
            std::process::exit(0);
        }
        // The main thread waits for this one only a limited time.
        loop {
            thread::park();
        }
    }));
}

fn answer(agent: &str, event: &str) -> Handled {
    let payload = read_payload();
    let (mut backend, context) = match surroundings() {
        Ok(surroundings) => surroundings,
        Err(trouble) => {
            let reply =
                HookReply::message(format!("nono: checkpoints: {}", nono::diagnostic::escape(&trouble)));
            return Handled { reply, ..Handled::default() };
        }
    };
    match payload {
        Ok(payload) => {
            let told = agents::told(agent, event, &payload);
            if let Some(reply) = rollback(&told, agent, event) {
                return Handled { reply, ..Handled::default() };
            }
            let context = Context { sandbox: sandbox(&told, agent), ..context };
            run::handle(&told, backend.as_mut(), &context)
        }
        Err(why) => run::unreadable(agent, event, &why, backend.as_mut(), &context),
    }
}

/// Answers `/rollback` directly where the agent lets a hook answer, without its model.
fn rollback(told: &HookPayload, agent: &str, event: &str) -> Option<HookReply> {
    let HookEvent::Prompt { text } = &told.event else { return None };
    let typed = slash_command::of_prompt(text).filter(|_| agents::answers_itself(agent, event))?;
    Some(HookReply { answer: Some(super::hooks::rollback_said(typed)), ..HookReply::default() })
}

fn read_payload() -> Result<Value, ErrorText> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {} MB", LONGEST >> 20));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".to_owned());
    }
    let payload: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if payload.is_object() { Ok(payload) } else { Err("it is not a JSON object".to_owned()) }
}

/// Backend that takes checkpoints, and the context of this process.
fn surroundings() -> Result<(Box<dyn Backend>, Context), ErrorText> {
    let home = home().ok_or("HOME is not set to a folder")?;
    let cwd = std::env::current_dir().map_err(|error| format!("the working directory: {error}"))?;
    let (backend, config, state_dir): (Box<dyn Backend>, Config, _) = if let Some(socket) = request_socket() {
        // The supervisor decides whether checkpoints are on: the settings cannot be read inside.
        (Box::new(Remote::new(socket)), Config { enabled: true, ..Config::default() }, None)
    } else {
        let manager = manager(home.clone())?;
        let (config, state_dir) = (manager.config().clone(), manager.host().state_dir.clone());
        (Box::new(Local::new(manager)), config, Some(state_dir))
    };
    let (enabled, always) = (config.enabled, config.always);
    let context = Context { cwd, home, state_dir, enabled, always, sandbox: None };
    Ok((backend, context))
}

pub(super) fn manager(home: PathBuf) -> Result<CheckpointManager, ErrorText> {
    let state_dir = state_home(&home);
    let config = settings::load(&state_dir.join("config.toml")).map_err(|error| error.to_string())?;
    if config.enabled {
        state_dir::ensure(&state_dir).map_err(|error| error.to_string())?;
    }
    let stand_ins = nono::session::stand_ins(&state_dir);
    let manager = CheckpointManager::new(Host { state_dir, home: home.clone() }, config).without(stand_ins);
    let workdir = std::env::current_dir().unwrap_or(home);
    Ok(nono::checkpoints::recording(manager, author(workdir)))
}

/// The sandbox around this process, for events after which the agent is informed about it.
fn sandbox(told: &HookPayload, agent: &str) -> Option<Arc<dyn SandboxAround>> {
    if !matches!(told.event, HookEvent::SessionStart | HookEvent::AfterTool { .. }) {
        return None;
    }
    // Without a readable description nothing is explained; denials stay denials.
    let state = SandboxState::from_json(&std::fs::read_to_string(cap_file()?).ok()?).ok()?;
    let known: Result<agents::Agent, _> = agent.parse();
    let command = known.map_or_else(|_| agent.to_owned(), |known| known.program().to_owned());
    Some(Arc::new(Sandbox {
        policy: state.policy?,
        asks: asks(),
        command,
        typed: state.typed,
        socket: request_socket(),
    }))
}
