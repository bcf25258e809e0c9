//! Handling of the events that an agent reports.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use nono_checkpoint::Origin;
use nono_checkpoint::manager::RestoreNote;
use nono_checkpoint::project::leads_to;
use nono_checkpoint::trigger::{self, Judgement, ToolCall};
use nono_policy::text::{escape, shown};
use serde_json::json;

use super::agents::rewind;
use super::backend::{Backend, ErrorText, Protected};
use super::{HookEvent, HookPayload, HookReply};

/// Sandbox around an agent, as the agent is told of it.
pub trait SandboxAround: fmt::Debug + Send + Sync {
    /// Message for the beginning of a conversation.
    fn introduction(&self) -> String;

    /// Explanation of a tool's output and of the path it was given; `None` if the sandbox does not close what the tool
    /// complains about.
    fn explain(&self, call: &ToolCall, failed: Option<bool>, output: &str) -> Option<String>;
}

/// Environment of the hook.
#[derive(Clone, Debug)]
pub struct Context {
    /// Directory that the hook runs in, for agents that do not report theirs.
    pub cwd: PathBuf,
    pub home: PathBuf,
    /// nono's own folder, if the agent could reach it: inside a sandbox it cannot.
    pub state_dir: Option<PathBuf>,
    /// Whether checkpoints are taken at all.
    pub enabled: bool,
    /// Take a checkpoint before every tool call, whatever it does.
    pub always: bool,
    /// Sandbox around this process.
    pub sandbox: Option<Arc<dyn SandboxAround>>,
}

/// Result of handling an event: the reply, and work left for the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    pub reply: HookReply,
    /// Projects of which a checkpoint was taken: their stores can be settled.
    pub taken: Vec<PathBuf>,
    /// Whether something was not protected, perhaps for lack of space, which can be freed.
    pub short: bool,
}

pub fn handle(told: &HookPayload, backend: &mut dyn Backend, context: &Context) -> Handled {
    let cwd = told.cwd.as_ref().map_or_else(|| context.cwd.clone(), |cwd| context.cwd.join(cwd));
    let mut run = Run { backend, context, origin: &told.origin, cwd, handled: Handled::default() };
    let judged = match &told.event {
        HookEvent::BeforeTool { call } => run.judge(call),
        _ => Judgement::Harmless,
    };
    if let (HookEvent::BeforeTool { call }, Judgement::Destructive { targets, .. }) = (&told.event, &judged) {
        run.handled.reply.ask = run.removes_history(call, targets);
    }
    if context.enabled {
        match &told.event {
            HookEvent::SessionStart | HookEvent::Prompt { .. } => run.prompt(&told.event),
            HookEvent::BeforeTool { call } => run.before(call, judged),
            HookEvent::AfterTool { call, .. } => run.after(call),
            // Calls whose end the agent never reported (some report nothing of a failed call) are over, and later changes
            // are not the agent's.
            HookEvent::Stop | HookEvent::SessionEnd => {
                let stopped = run.backend.stopped(run.origin, std::slice::from_ref(&run.cwd));
                run.handled.reply.note(stopped);
            }
            HookEvent::Unknown => {}
        }
    }
    let mut handled = run.handled;
    if let Some(sandbox) = &context.sandbox {
        explain_sandbox(told, sandbox.as_ref(), &mut handled.reply);
    }
    handled
}

/// An event that is being handled.
struct Run<'a> {
    backend: &'a mut dyn Backend,
    context: &'a Context,
    origin: &'a Origin,
    cwd: PathBuf,
    handled: Handled,
}

impl Run<'_> {
    fn judge(&self, call: &ToolCall) -> Judgement {
        trigger::judge(call, &self.cwd, &self.context.home)
    }

    /// Record a prompt, and pass pending notes to the model. The start of a session begins no turn.
    fn prompt(&mut self, event: &HookEvent) {
        let reply = &mut self.handled.reply;
        if let HookEvent::Prompt { text } = event {
            let said = first_words(text);
            let origin = Origin { prompt: Some(said).filter(|said| !said.is_empty()), ..self.origin.clone() };
            reply.note(self.backend.prompt(&origin, text));
        }
        match self.backend.notes(self.origin) {
            Ok(notes) => {
                let rewind = self.origin.agent.as_deref().and_then(rewind);
                for note in &notes {
                    reply.inform(&note_words(note, rewind));
                }
            }
            Err(trouble) => reply.tell(&trouble_words(&trouble)),
        }
    }

    fn before(&mut self, call: &ToolCall, judged: Judgement) {
        let (origin, handled) = (with_tool(self.origin, call), &mut self.handled);
        let (targets, reason) = match judged {
            Judgement::Destructive { targets, reason } => (targets, reason),
            Judgement::Harmless if self.context.always => (vec![self.cwd.clone()], trigger::reason(call)),
            Judgement::Harmless => {
                // It is in the log of the run, and no project is scanned: a turn of read-only calls costs nothing.
                if matches!(call, ToolCall::Shell { .. }) {
                    handled.reply.note(self.backend.begins(&origin, command_of(call)));
                }
                return;
            }
        };
        let protected = self.backend.before(&origin, &reason, command_of(call), &targets);
        handled.taken.clone_from(&protected.taken);
        handled.short = !protected.unprotected.is_empty();
        handled.reply.tell_unprotected(&protected);
        protected.troubles.iter().for_each(|trouble| handled.reply.tell(&trouble_words(trouble)));
    }

    /// Reason to ask the user about a call first: it removes what it could be undone with. From inside a sandbox that is
    /// impossible, whatever is typed.
    fn removes_history(&self, call: &ToolCall, targets: &[PathBuf]) -> Option<String> {
        let state = self.context.state_dir.as_ref()?;
        let state = state.canonicalize().unwrap_or_else(|_| state.clone());
        let is_own =
            |target: &PathBuf| leads_to(target).unwrap_or_else(|| target.clone()).starts_with(&state);
        (targets.iter().any(is_own) || trigger::forgets(call, &self.cwd, &self.context.home)).then(|| {
            "nono: this would remove checkpoints, sessions or hooks of nono, and nothing brings them back"
                .to_owned()
        })
    }

    fn after(&mut self, call: &ToolCall) {
        let mut targets = match self.judge(call) {
            Judgement::Destructive { targets, .. } => targets,
            Judgement::Harmless if !self.context.always => return,
            Judgement::Harmless => Vec::new(),
        };
        // A shell may have written more than could be told from its command line.
        if !matches!(call, ToolCall::Files { .. }) {
            targets.push(self.cwd.clone());
        }
        self.handled.reply.note(self.backend.after(&with_tool(self.origin, call), &targets));
    }
}

/// Beginning of the prompt, on one line.
fn first_words(text: &str) -> String {
    const WORDS: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= WORDS {
        return line;
    }
    line.chars().take(WORDS - 1).chain(['…']).collect()
}

/// Handle an unreadable payload: before a tool, take a checkpoint, whatever the tool is about to do.
pub fn unreadable(
    agent: &str,
    event: &str,
    why: &str,
    backend: &mut dyn Backend,
    context: &Context,
) -> Handled {
    let mut handled = Handled::default();
    handled.reply.tell(&format!("nono: cannot parse the hook's payload: {}", escape(why)));
    let event = event.to_lowercase();
    if context.enabled && (event.contains("pre") || event.contains("before")) && event.contains("tool") {
        let origin = Origin { agent: Some(agent.to_owned()), ..Origin::default() };
        let (why, target) = ("before a call that nono could not parse", std::slice::from_ref(&context.cwd));
        let protected = backend.before(&origin, why, None, target);
        handled.reply.tell_unprotected(&protected);
        handled.taken = protected.taken;
    }
    handled
}

fn command_of(call: &ToolCall) -> Option<&str> {
    match call {
        ToolCall::Shell { command, .. } => Some(command),
        _ => None,
    }
}

fn with_tool(origin: &Origin, call: &ToolCall) -> Origin {
    let tool = origin.tool.clone().or_else(|| Some(call.tool().to_owned()).filter(|tool| !tool.is_empty()));
    Origin { tool, ..origin.clone() }
}

fn explain_sandbox(told: &HookPayload, sandbox: &dyn SandboxAround, reply: &mut HookReply) {
    match &told.event {
        HookEvent::SessionStart => reply.inform(&sandbox.introduction()),
        HookEvent::AfterTool { call, failed, output } => {
            if let Some(text) = sandbox.explain(call, *failed, output) {
                reply.inform(&text);
            }
        }
        _ => {}
    }
}

fn trouble_words(trouble: &str) -> String {
    format!("nono: checkpoints: {}", escape(trouble))
}

/// Message for the model that its edits are gone, as text and as JSON.
fn note_words(note: &RestoreNote, rewind: Option<&str>) -> String {
    const FILES: usize = 50;
    const TURNS: usize = 200;
    let few =
        |list: &[String], most: usize| list.iter().take(most).map(|text| escape(text)).collect::<Vec<_>>();
    let files = few(&note.files, FILES);
    let value = json!({
        "nono_restore": {
            "project": shown(&note.project),
            "checkpoint": note.checkpoint,
            "turns_undone": few(&note.turns_undone, TURNS),
            "files": files,
            "files_total": note.files.len(),
        }
    });
    let what = match (note.came_back, note.alone) {
        (true, _) => "the restore that you were told of was undone: your edits since then are there again",
        (false, true) => {
            "what you did in an earlier turn was taken back, and what you did later stays. Read the files again before \
             you rely on what they hold"
        }
        (false, false) => {
            "files of this project were put back to an earlier checkpoint: your edits to them since then are gone. \
             Read them again before you rely on what they hold"
        }
    };
    let rewind = rewind.filter(|_| !note.came_back && !note.alone && !note.turns_undone.is_empty());
    let rewind =
        rewind.map(|how| format!(" A person takes this conversation back to the same point by {how}."));
    format!("[nono] {what}.{}\n{value}", rewind.unwrap_or_default())
}

impl HookReply {
    /// Append a problem with checkpoints, if there is one.
    fn note(&mut self, done: Result<(), ErrorText>) {
        if let Err(trouble) = done {
            self.tell(&trouble_words(&trouble));
        }
    }

    fn tell_unprotected(&mut self, protected: &Protected) {
        for (path, why) in &protected.unprotected {
            self.tell(&format!("nono: no checkpoint of {}: {}", shown(path), escape(why)));
        }
    }

    /// Append a text for the model.
    pub fn inform(&mut self, text: &str) {
        add(&mut self.context, text);
    }

    /// Append a text for the user.
    pub fn tell(&mut self, text: &str) {
        add(&mut self.message, text);
    }
}

fn add(place: &mut Option<String>, text: &str) {
    let whole = place.get_or_insert_default();
    if !whole.is_empty() {
        whole.push('\n');
    }
    whole.push_str(text);
}

#[cfg(test)]
mod tests;
