//! `nono hook`: what agents call. It answers in the agent's format and ends with 0, whatever happens: an agent may take
//! any other code as a decision to block its tool.
//!
//! How it could fail, and what is done about it: a payload that is missing, too long, no JSON or no text is reported (and
//! before a tool, everything here is kept); an error is part of the answer; a panic in the thread that judges a line
//! stops only that thread, whose answer is not waited for long; any other panic ends in an empty answer and 0, also where
//! a panic aborts.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::panic;
use std::path::PathBuf;
use std::thread;

use nono::checkpoints::{CheckpointManager, Config, Host, settings};
use nono::hooks::agents;
use nono::hooks::backend::{Backend, Local, Remote, Trouble};
use nono::hooks::denial::Sandbox;
use nono::hooks::run::{self, Context, Handled};
use nono::hooks::{Event, Reply, Told, slash};
use nono::{SandboxState, state_dir};
use serde_json::Value;

use super::upkeep;
use crate::host::{asks, cap_file, home, request_socket, state_home};

/// The longest payload that is read.
const LONGEST: u64 = 16 << 20;

/// Whether these are the arguments of a hook: also without the right number of them, but not when help is asked for.
pub(crate) fn is_hook(args: &[OsString]) -> bool {
    args.first().is_some_and(|first| first == "hook")
        && !args.iter().any(|arg| arg == "--help" || arg == "-h" || arg == "help")
}

/// `args`: what comes after `hook`.
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

/// A closed standard output is an agent that does not want to hear.
fn say(answer: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{answer}").and_then(|()| stdout.flush());
}

/// The release build aborts on a panic, after this was called.
fn survive_panics(agent: &str, event: &str) {
    let reply = Reply::message("nono: the hook failed; this call has no checkpoint");
    let last_words = agents::answer(agent, event, &reply);
    let main = thread::current().id();
    panic::set_hook(Box::new(move |_| {
        if thread::current().id() == main {
            say(&last_words);
            std::process::exit(0);
        }
        // Whoever waits for this thread does so for a limited time.
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
            let reply = Reply::message(format!("nono: checkpoints: {}", nono::diagnostic::escape(&trouble)));
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

/// `/rollback` is answered here, word for word, where the agent lets a hook answer: its model is not needed for it.
fn rollback(told: &Told, agent: &str, event: &str) -> Option<Reply> {
    let Event::Prompt { text } = &told.event else { return None };
    let typed = slash::of_prompt(text).filter(|_| agents::answers_itself(agent, event))?;
    Some(Reply { answer: Some(super::hooks::rollback_said(typed)), ..Reply::default() })
}

fn read_payload() -> Result<Value, Trouble> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {} MB", LONGEST >> 20));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".to_owned());
    }
    let payload: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if payload.is_object() { Ok(payload) } else { Err("it is no JSON object".to_owned()) }
}

/// Who carries it out, and what is known of this machine.
fn surroundings() -> Result<(Box<dyn Backend>, Context), Trouble> {
    let home = home().ok_or("HOME names no folder")?;
    let cwd = std::env::current_dir().map_err(|error| format!("the working directory: {error}"))?;
    let (backend, config, state_dir): (Box<dyn Backend>, Config, _) = if let Some(socket) = request_socket() {
        // Whether they are taken at all is decided outside; here nobody can read the settings.
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

pub(super) fn manager(home: PathBuf) -> Result<CheckpointManager, Trouble> {
    let state_dir = state_home(&home);
    let config = settings::load(&state_dir.join("config.toml")).map_err(|error| error.to_string())?;
    if config.enabled {
        state_dir::ensure(&state_dir).map_err(|error| error.to_string())?;
    }
    let placeholders = nono::session::placeholders(&state_dir);
    Ok(CheckpointManager::new(Host { state_dir, home }, config).without(placeholders))
}

/// The sandbox around this process, where the agent is to hear of it.
fn sandbox(told: &Told, agent: &str) -> Option<Sandbox> {
    if !matches!(told.event, Event::SessionStart | Event::AfterTool { .. }) {
        return None;
    }
    // A description that cannot be read describes nothing: what is denied stays denied.
    let state = SandboxState::from_json(&std::fs::read_to_string(cap_file()?).ok()?).ok()?;
    let known: Result<agents::Agent, _> = agent.parse();
    let command = known.map_or_else(|_| agent.to_owned(), |known| known.program().to_owned());
    Some(Sandbox {
        policy: state.policy?,
        asks: asks(),
        command,
        typed: state.typed,
        socket: request_socket(),
    })
}
