//! Size limits for values from outside. A value that was cut ends in a mark.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::event::{AuditEvent, DenialKey, Network};

const MARK: &str = "…";
/// Maximum size of a path; longer than any path the kernel accepts at once.
const PATH: usize = 8 << 10;
const TEXT: usize = 4 << 10;
const WORD: usize = 64;
const HOST: usize = 255;
const URL_PATH: usize = 1 << 10;
/// Maximum total size of a command line.
const COMMAND: usize = 64 << 10;
const PATHS: usize = 1000;

fn text(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(MARK);
    }
}

fn optional(value: &mut Option<String>, limit: usize) {
    if let Some(value) = value {
        text(value, limit);
    }
}

fn path(path: &mut PathBuf) {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > PATH {
        *path = OsString::from_vec([&bytes[..PATH], MARK.as_bytes()].concat()).into();
    }
}

fn paths(list: &mut Vec<PathBuf>) {
    let more = list.len().saturating_sub(PATHS);
    if more > 0 {
        list.truncate(PATHS);
        list.push(format!("{MARK} and {more} more").into());
    }
    list.iter_mut().for_each(path);
}

fn command(words: &mut Vec<String>) {
    let (mut left, count) = (COMMAND, words.len());
    for at in 0..count {
        text(&mut words[at], TEXT);
        if words[at].len() > left {
            words.truncate(at);
            words.push(format!("{MARK} and {} more", count - at));
            return;
        }
        left -= words[at].len();
    }
}

pub(crate) fn denial(key: &mut DenialKey) {
    text(&mut key.kind, WORD);
    text(&mut key.access, WORD);
    text(&mut key.reason, 512);
    path(&mut key.program);
    if let Some(found) = &mut key.path {
        path(found);
    }
}

pub(crate) fn network(event: &mut Network) {
    text(&mut event.mode, WORD);
    text(&mut event.host, HOST);
    optional(&mut event.method, WORD);
    optional(&mut event.path, URL_PATH);
    optional(&mut event.reason, 512);
    optional(&mut event.category, WORD);
    optional(&mut event.address, HOST);
    optional(&mut event.credential, HOST);
}

/// Cuts the fields of an event so that it fits into a record.
pub(crate) fn event(event: &mut AuditEvent) {
    match event {
        AuditEvent::SessionStarted(started) => {
            command(&mut started.command);
            paths(&mut started.tracked_paths);
            optional(&mut started.name, HOST);
            text(&mut started.network, TEXT);
        }
        AuditEvent::SessionEnded(ended) => optional(&mut ended.limit, TEXT),
        AuditEvent::CapabilityDecision(decision) => {
            path(&mut decision.path);
            path(&mut decision.program);
            text(&mut decision.access, WORD);
            text(&mut decision.by, TEXT);
            optional(&mut decision.reason, TEXT);
        }
        AuditEvent::Denial(found) => denial(&mut found.what),
        AuditEvent::UrlOpen(opened) => {
            text(&mut opened.url, PATH);
            path(&mut opened.program);
            text(&mut opened.by, TEXT);
            optional(&mut opened.error, TEXT);
        }
        AuditEvent::Network(found) => network(found),
        AuditEvent::Restore(restore) => {
            paths(&mut restore.paths);
            text(&mut restore.session_id, PATH);
            text(&mut restore.outcome, TEXT);
        }
        AuditEvent::Checkpoint(taken) => {
            path(&mut taken.project);
            text(&mut taken.reason, TEXT);
            optional(&mut taken.error, TEXT);
        }
        AuditEvent::AgentPrompt(prompt) => {
            for word in [&mut prompt.agent, &mut prompt.conversation, &mut prompt.turn] {
                optional(word, TEXT);
            }
        }
        AuditEvent::AgentCall(call) => {
            for word in [&mut call.agent, &mut call.conversation, &mut call.turn, &mut call.tool] {
                optional(word, TEXT);
            }
            optional(&mut call.command, TEXT);
        }
        AuditEvent::BackendError(error) => text(&mut error.why, TEXT),
        AuditEvent::Warning(warning) => text(&mut warning.message, TEXT),
        AuditEvent::Snapshot(_) | AuditEvent::Seal(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_between_letters_and_marked() {
        let mut long = "é".repeat(WORD);
        text(&mut long, WORD + 1);
        assert_eq!(long, "é".repeat(WORD / 2) + MARK);
        let mut words = vec!["x".repeat(TEXT * 2); 100];
        command(&mut words);
        assert!(words.iter().map(String::len).sum::<usize>() <= COMMAND + 100);
        assert_eq!(words.last().unwrap(), "… and 85 more");
        let mut whole = PathBuf::from("/a".repeat(PATH / 2));
        path(&mut whole);
        assert_eq!(whole.as_os_str().len(), PATH);
    }
}
