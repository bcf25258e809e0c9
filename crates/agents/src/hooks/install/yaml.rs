//! Hooks in Hermes' `config.yaml`: `hooks: {EVENT: [{command, timeout}]}`. Comments survive, since only whole lines are
//! inserted and removed.

use std::path::Path;

use super::InstallError;
use super::json_hooks::{Hook, signature_of};
use super::jsonc::HookFileProblem;
use super::yaml_scan::{Block, Unsure, YamlEvent, YamlLine, block, check, flattened, lines};

/// Marks a `hooks:` key that was added by nono.
const MARK: &str = "# nono:begin hermes: the key `hooks` was added by `nono hooks install hermes`";

#[derive(Debug)]
pub(super) enum YamlProblem {
    /// Not YAML, or not a mapping.
    Malformed(HookFileProblem),
    /// YAML that nono cannot extend.
    Unsure { unsure: Unsure, add: String },
}

impl YamlProblem {
    pub(super) fn at(self, path: &Path) -> InstallError {
        match self {
            YamlProblem::Malformed(problem) => problem.at(path),
            YamlProblem::Unsure { unsure: (line, what), add } => {
                InstallError::Yaml { path: path.to_owned(), line, what, add }
            }
        }
    }
}

/// Lines of one hook, below its event.
fn item(hook: &Hook, indent: usize) -> Vec<String> {
    let blanks = " ".repeat(indent);
    // A JSON string is a valid YAML string.
    let command = serde_json::Value::from(hook.command.as_str());
    vec![format!("{blanks}- command: {command}"), format!("{blanks}  timeout: {}", hook.timeout)]
}

fn event(hook: &Hook, indent: usize) -> Vec<String> {
    let mut lines = vec![format!("{}{}:", " ".repeat(indent), hook.event)];
    lines.extend(item(hook, indent + 2));
    lines
}

/// The whole block, as it would be written by hand.
fn whole(hooks: &[Hook]) -> Vec<String> {
    let events = hooks.iter().flat_map(|hook| event(hook, 2));
    std::iter::once("hooks:".to_owned()).chain(events).collect()
}

/// A text that is edited by whole lines.
struct Edited {
    lines: Vec<String>,
    newline: &'static str,
}

impl Edited {
    fn new(text: &str) -> Edited {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Edited { lines: text.split_inclusive('\n').map(str::to_owned).collect(), newline }
    }

    fn text(&self) -> String {
        self.lines.concat()
    }

    fn insert(&mut self, at: usize, new: Vec<String>) {
        if let Some(last) = at.checked_sub(1).and_then(|at| self.lines.get_mut(at))
            && !last.ends_with('\n')
        {
            last.push_str(self.newline);
        }
        let new = new.into_iter().map(|line| line + self.newline);
        self.lines.splice(at..at, new);
    }

    fn replace(&mut self, at: usize, line: &str) {
        self.lines[at] = format!("{line}{}", self.newline);
    }
}

fn scan(text: &str, hooks: &[Hook]) -> Result<Option<Block>, YamlProblem> {
    check(text).map_err(YamlProblem::Malformed)?;
    block(&lines(text)).map_err(|unsure| YamlProblem::Unsure { unsure, add: whole(hooks).join("\n") })
}

/// Check the edited text: it is not written if it is no longer a valid mapping.
fn checked(before: &str, edited: &Edited, hooks: &[Hook]) -> Result<String, YamlProblem> {
    let text = edited.text();
    match check(&text) {
        Ok(()) => Ok(text),
        Err(HookFileProblem { line, .. }) => {
            // A line of the original file.
            let line = line.min(before.lines().count().max(1));
            let unsure = (line, "nono cannot extend settings in this form");
            Err(YamlProblem::Unsure { unsure, add: whole(hooks).join("\n") })
        }
    }
}

fn is_ours(lines: &[YamlLine<'_>], event: &YamlEvent, item: usize) -> bool {
    let signature = signature_of("hermes", &event.name);
    let text = flattened(&lines[event.items[item].clone()]);
    let Some(at) = text.find(&signature) else { return false };
    // The event's name may be a prefix of another one.
    !text[at + signature.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Items of nono's, as (event, item).
fn ours(text: &str, block: &Block) -> Vec<(usize, usize)> {
    let lines = lines(text);
    let mut found = Vec::new();
    for (at, event) in block.events.iter().enumerate() {
        found.extend(
            (0..event.items.len()).filter(|item| is_ours(&lines, event, *item)).map(|item| (at, item)),
        );
    }
    found
}

/// Text of nono's hooks in a file, one line each, with their events.
pub(super) fn found(text: &str, hooks: &[Hook]) -> Result<Vec<(String, String)>, YamlProblem> {
    let Some(block) = scan(text, hooks)? else { return Ok(Vec::new()) };
    let all = lines(text);
    let said = |(event, item): (usize, usize)| {
        let event = &block.events[event];
        (event.name.clone(), flattened(&all[event.items[item].clone()]))
    };
    Ok(ours(text, &block).into_iter().map(said).collect())
}

/// Whether this hook is in the file exactly once and in this form.
fn is_there(text: &str, block: &Block, hook: &Hook) -> bool {
    let all = lines(text);
    let wanted = item(hook, 0);
    let wanted: Vec<YamlLine<'_>> = wanted.iter().map(|text| YamlLine { text, number: 0 }).collect();
    let mine: Vec<String> = ours(text, block)
        .into_iter()
        .filter(|(event, _)| block.events[*event].name == hook.event)
        .map(|(event, item)| flattened(&all[block.events[event].items[item].clone()]))
        .collect();
    mine == [flattened(&wanted)]
}

pub(super) fn install(text: &str, hooks: &[Hook]) -> Result<String, YamlProblem> {
    let found_all = match scan(text, hooks)? {
        Some(block) => {
            hooks.iter().all(|hook| is_there(text, &block, hook)) && ours(text, &block).len() == hooks.len()
        }
        None => false,
    };
    if found_all {
        return Ok(text.to_owned());
    }
    // Hooks of nono's in another form are removed, and all of them are inserted anew.
    let text = remove(text, hooks)?;
    let mut edited = Edited::new(&text);
    match scan(&text, hooks)? {
        None => {
            let mut new = vec![MARK.to_owned()];
            new.extend(whole(hooks));
            let end = edited.lines.len();
            edited.insert(end, new);
        }
        Some(block) if block.is_empty => {
            edited.replace(block.key, "hooks:");
            edited.insert(block.key + 1, hooks.iter().flat_map(|hook| event(hook, 2)).collect());
        }
        Some(block) => extend(&mut edited, &block, hooks),
    }
    checked(&text, &edited, hooks)
}

/// Insert into a non-empty block, from the end to the beginning, so that line numbers stay valid.
fn extend(edited: &mut Edited, block: &Block, hooks: &[Hook]) {
    let is_known = |hook: &&Hook| block.events.iter().any(|event| event.name == hook.event);
    let new: Vec<String> =
        hooks.iter().filter(|hook| !is_known(hook)).flat_map(|hook| event(hook, block.indent)).collect();
    edited.insert(block.end, new);
    for event in block.events.iter().rev() {
        let Some(hook) = hooks.iter().find(|hook| hook.event == event.name) else { continue };
        edited.insert(event.end, item(hook, event.indent));
        if event.is_empty {
            edited.replace(event.key, &format!("{}{}:", " ".repeat(block.indent), event.name));
        }
    }
}

pub(super) fn remove(text: &str, hooks: &[Hook]) -> Result<String, YamlProblem> {
    let Some(block) = scan(text, hooks)? else { return Ok(text.to_owned()) };
    let ours = ours(text, &block);
    if ours.is_empty() {
        return Ok(text.to_owned());
    }
    let mut edited = Edited::new(text);
    let mut gone = vec![false; edited.lines.len()];
    for (event, item) in &ours {
        gone[block.events[*event].items[*item].clone()].fill(true);
    }
    let mut left = 0;
    for (at, event) in block.events.iter().enumerate() {
        let mine = ours.iter().filter(|(of, _)| *of == at).count();
        if mine > 0 && mine == event.items.len() {
            gone[event.key] = true;
        } else {
            left += 1;
        }
    }
    if left == 0 {
        let is_added = block.key > 0 && edited.lines[block.key - 1].trim() == MARK;
        if is_added {
            gone[block.key - 1..=block.key].fill(true);
        } else {
            edited.replace(block.key, "hooks: {}");
        }
    }
    let mut gone = gone.into_iter();
    edited.lines.retain(|_| !gone.next().unwrap_or(false));
    checked(text, &edited, hooks)
}
