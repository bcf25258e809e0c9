//! An approval backend of one's own: answers come from a list, and every question is printed.
//!
//! `approver GRANTED-FOLDER ANSWERS [--] COMMAND ARGS…`, where ANSWERS is for example `once,session,folder,deny,never`;
//! the last one is repeated. `@FOLDER` takes its time: the answer to the first question is the text of `FOLDER/1`, as
//! soon as there is one, to the second that of `FOLDER/2`. State is kept below `$NONO_HOME`, as the command line does.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example's output")]

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nono::approval::{ApprovalAnswer, ApprovalBackend, ApprovalError, Question, Scope, Verdict, Waiting};
use nono::session::{self, Asking, Host, SessionRequest};
use nono::{AccessMode, Ended, GrantKind, GrantRequest, HostContext, RunRequest};

#[derive(Debug)]
enum Script {
    Words(Mutex<Vec<String>>),
    Folder(PathBuf, AtomicUsize),
}

/// How often it is looked whether there is an answer, and whether somebody still waits for it.
const LOOK: Duration = Duration::from_millis(10);

impl Script {
    fn new(answers: &str) -> Script {
        match answers.strip_prefix('@') {
            Some(folder) => Script::Folder(folder.into(), AtomicUsize::new(0)),
            None => Script::Words(Mutex::new(answers.split(',').map(str::to_owned).collect())),
        }
    }

    fn next(&self, waiting: &dyn Waiting) -> Result<String, ApprovalError> {
        match self {
            Script::Words(words) => {
                let mut words = words.lock().map_err(|_| ApprovalError::NoTerminal)?;
                let next = if words.len() > 1 { Some(words.remove(0)) } else { words.first().cloned() };
                Ok(next.unwrap_or_default())
            }
            Script::Folder(folder, asked) => {
                let answer = folder.join((asked.fetch_add(1, Ordering::Relaxed) + 1).to_string());
                loop {
                    if let Ok(word) = std::fs::read_to_string(&answer) {
                        return Ok(word);
                    }
                    if !waiting.still_wanted() {
                        println!("withdrawn");
                        return Err(ApprovalError::Withdrawn);
                    }
                    std::thread::sleep(LOOK);
                }
            }
        }
    }
}

impl ApprovalBackend for Script {
    fn name(&self) -> String {
        "script".to_owned()
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError> {
        println!("question: {:?} by {:?}", question.subject, question.asker);
        let word = self.next(waiting)?;
        let verdict = match word.as_str() {
            "once" => Verdict::Allow(Scope::Once),
            "session" => Verdict::Allow(Scope::Session),
            "folder" => Verdict::Allow(Scope::Directory),
            "never" => Verdict::Never,
            _ => Verdict::Deny,
        };
        Ok(ApprovalAnswer::new(verdict, format!("script: {word}")))
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let granted = PathBuf::from(args.next().ok_or("which folder is granted?")?);
    let answers = args.next().ok_or("which answers?")?.into_string().map_err(|_| "answers are words")?;
    let command: Vec<OsString> = args.skip_while(|arg| arg == "--").collect();
    let home = PathBuf::from(std::env::var_os("HOME").ok_or("no HOME")?);
    let state_dir = std::env::var_os("NONO_HOME").map_or_else(|| home.join(".nono"), PathBuf::from);
    let context = HostContext {
        cwd: std::env::current_dir()?,
        config_dir: home.join(".config/nono"),
        home: Some(home),
        state_dir,
        binary: std::env::current_exe().ok(),
        agent_folders: Vec::new(),
        can_mask: true,
        ..HostContext::default()
    };
    let host = Host {
        context,
        env: std::env::vars_os().collect(),
        session_base: std::env::temp_dir().join(format!("nono-{}", session::user_id())),
        profile_dir: None,
        nested: false,
    };
    let grant = GrantRequest { path: granted, access: AccessMode::ReadWrite, kind: GrantKind::Directory };
    let script = Script::new(&answers);
    let request = SessionRequest {
        asking: Asking { wanted: Some(true), backend: Arc::new(script), ..Asking::default() },
        ..SessionRequest::new(RunRequest { grants: vec![grant], ..RunRequest::default() }, command)
    };
    let planned = session::plan(request, &host)?;
    let report = session::run(planned, &(Arc::new(()) as Arc<dyn session::RunObserver>))?;
    println!("ended: {:?}", report.ended);
    println!("report: {}", serde_json::to_string_pretty(&report.mediation)?);
    Ok(match report.ended {
        Ended::Code(code) => ExitCode::from(u8::try_from(code)?),
        Ended::Signal(signal) => ExitCode::from(u8::try_from(128 + signal)?),
    })
}
