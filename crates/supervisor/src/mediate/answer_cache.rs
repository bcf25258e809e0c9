//! Answers given in this session, so that nothing is asked twice.
//!
//! Kept by resolved path, as a person understands an answer. They are looked up only for objects that are pinned and
//! that no closed path contains; see `decide_open.rs`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nono_policy::{AccessMode, is_within};

use super::call::access;
use crate::approval::{ApprovalAnswer, Scope, Verdict};
use crate::report::Expansion;

/// Known answer for a path and an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Granted { by: String },
    Denied { by: String },
}

impl Answered {
    /// The same answer, for a request made before it was given.
    pub(super) fn into_answer(self) -> ApprovalAnswer {
        match self {
            Answered::Granted { by } => ApprovalAnswer::new(Verdict::Allow(Scope::Once), by),
            Answered::Denied { by } => ApprovalAnswer::new(Verdict::Deny, by),
        }
    }
}

/// Maximum number of paths remembered; beyond it answers hold for their one call.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Answers {
    granted: HashMap<PathBuf, (u8, String)>,
    folders: Vec<(PathBuf, u8, String)>,
    denied: HashMap<(PathBuf, u8), String>,
    never: Vec<(PathBuf, String)>,
    expansions: Vec<Expansion>,
    /// Indices in `expansions`, by path.
    noted: HashMap<PathBuf, Vec<usize>>,
}

/// Grant that an answer makes.
fn made(path: &Path, is_dir: bool, rights: u8, folder: Option<&Path>, scope: Scope, by: String) -> Expansion {
    let (path, is_dir, scope) = match (scope, folder) {
        (Scope::Directory, Some(folder)) => (folder, true, scope),
        // Too wide a directory: the answer holds for the object shown.
        (Scope::Directory, None) => (path, is_dir, Scope::Session),
        _ => (path, is_dir, scope),
    };
    Expansion { path: path.to_owned(), access: access(rights), is_dir, scope, by }
}

impl Answers {
    /// Answer for `rights` on `path`, if there is one. A denial wins over a wider grant.
    pub(super) fn look_up(&self, path: &Path, rights: u8) -> Option<Answered> {
        if let Some((_, by)) = self.never.iter().find(|(never, _)| is_within(path, never)) {
            return Some(Answered::Denied { by: by.clone() });
        }
        let own = self.granted.get(path).map(|(given, by)| (*given, by));
        let folders = self.folders.iter().filter(|(folder, ..)| is_within(path, folder));
        let given = own.into_iter().chain(folders.map(|(_, given, by)| (*given, by)));
        let (all, by) = given.fold((0, None), |(all, _), (given, by)| (all | given, Some(by)));
        if let Some(by) = by.filter(|_| all & rights == rights) {
            return Some(Answered::Granted { by: by.clone() });
        }
        self.denied.get(&(path.to_owned(), rights)).map(|by| Answered::Denied { by: by.clone() })
    }

    /// Approver that denied this access or a part of it.
    pub(super) fn refused_by(&self, path: &Path, wanted: AccessMode) -> Option<String> {
        let never = self.never.iter().find(|(never, _)| is_within(path, never)).map(|(_, by)| by);
        let refused = self.denied.iter().find(|((denied, rights), _)| {
            let refused = access(*rights);
            denied == path && (refused.reads() && wanted.reads() || refused.writes() && wanted.writes())
        });
        never.or(refused.map(|(_, by)| by)).cloned()
    }

    /// Remembers an answer. `folder` is what a grant for a directory covers, if it may be given at all.
    pub(super) fn keep(
        &mut self,
        path: &Path,
        is_dir: bool,
        rights: u8,
        folder: Option<&Path>,
        answer: &ApprovalAnswer,
    ) {
        let by = answer.by.clone();
        let scope = match answer.verdict {
            Verdict::Deny => {
                if self.denied.len() < MOST {
                    self.denied.insert((path.to_owned(), rights), by);
                }
                return;
            }
            Verdict::Never => {
                if self.never.len() < MOST {
                    self.never.push((path.to_owned(), by));
                }
                return;
            }
            Verdict::Allow(scope) => scope,
        };
        let made = made(path, is_dir, rights, folder, scope, by.clone());
        let (path, scope) = (made.path.clone(), made.scope);
        if !self.note(made) {
            return;
        }
        match scope {
            Scope::Once => {}
            Scope::Directory => {
                // Waiters for the same answer are answered one after another.
                if !self.folders.iter().any(|(folder, given, _)| *folder == path && *given == rights) {
                    self.folders.push((path, rights, by));
                }
            }
            Scope::Session | Scope::Saved => {
                let entry = self.granted.entry(path).or_insert((0, by));
                entry.0 |= rights;
            }
        }
    }

    /// Reports an answer without remembering it: one that is computed anew each time may change.
    pub(super) fn report(
        &mut self,
        path: &Path,
        is_dir: bool,
        rights: u8,
        folder: Option<&Path>,
        answer: &ApprovalAnswer,
    ) {
        if let Verdict::Allow(scope) = answer.verdict {
            self.note(made(path, is_dir, rights, folder, scope, answer.by.clone()));
        }
    }

    /// Adds a grant to the report; false if there are too many.
    fn note(&mut self, made: Expansion) -> bool {
        if self.expansions.len() >= MOST {
            return false;
        }
        let same = self.noted.entry(made.path.clone()).or_default();
        if !same.iter().any(|at| self.expansions.get(*at) == Some(&made)) {
            same.push(self.expansions.len());
            self.expansions.push(made);
        }
        true
    }

    pub(super) fn expansions(&self) -> Vec<Expansion> {
        self.expansions.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::allow_table::{READ, WRITE};
    use super::*;

    fn answer(verdict: Verdict) -> ApprovalAnswer {
        ApprovalAnswer::new(verdict, "test")
    }

    fn is(answers: &Answers, path: &str, rights: u8) -> Option<bool> {
        answers.look_up(Path::new(path), rights).map(|answered| matches!(answered, Answered::Granted { .. }))
    }

    #[test]
    fn once_is_not_kept_and_a_session_is() {
        let mut answers = Answers::default();
        answers.keep(Path::new("/a"), false, READ, None, &answer(Verdict::Allow(Scope::Once)));
        assert_eq!(is(&answers, "/a", READ), None);
        answers.keep(Path::new("/a"), false, READ, None, &answer(Verdict::Allow(Scope::Session)));
        assert_eq!(is(&answers, "/a", READ), Some(true));
        assert_eq!(is(&answers, "/a", WRITE), None, "reading can be raised to writing, by another answer");
        answers.keep(Path::new("/a"), false, WRITE, None, &answer(Verdict::Allow(Scope::Session)));
        assert_eq!(is(&answers, "/a", READ | WRITE), Some(true));
        assert_eq!(answers.expansions().len(), 3);
    }

    #[test]
    fn a_folder_is_given_only_if_it_may_be() {
        let mut answers = Answers::default();
        let yes = answer(Verdict::Allow(Scope::Directory));
        answers.keep(Path::new("/d/a"), false, READ, Some(Path::new("/d")), &yes);
        assert_eq!(is(&answers, "/d/b/c", READ), Some(true));
        assert_eq!(is(&answers, "/dd", READ), None);
        answers.keep(Path::new("/e/a"), false, READ, None, &yes);
        assert_eq!(is(&answers, "/e/a", READ), Some(true));
        assert_eq!(is(&answers, "/e/b", READ), None);
    }

    #[test]
    fn what_is_answered_anew_each_time_is_only_reported() {
        let mut answers = Answers::default();
        let yes = answer(Verdict::Allow(Scope::Directory));
        for _ in 0..3 {
            answers.report(Path::new("/d/a"), false, READ, Some(Path::new("/d")), &yes);
            answers.report(Path::new("/d/a"), false, READ, None, &answer(Verdict::Never));
        }
        assert_eq!(answers.expansions().len(), 1);
        assert_eq!(is(&answers, "/d/a", READ), None);
        for _ in 0..3 {
            answers.keep(Path::new("/d/a"), false, READ, Some(Path::new("/d")), &yes);
        }
        assert_eq!((answers.expansions().len(), answers.folders.len()), (1, 1));
        assert_eq!(is(&answers, "/d/b", READ), Some(true));
    }

    #[test]
    fn who_said_no_can_be_asked() {
        let mut answers = Answers::default();
        let path = Path::new("/a/b");
        let no = |verdict| ApprovalAnswer::new(verdict, "terminal".to_owned());
        let by = |answers: &Answers, path: &str, access| answers.refused_by(Path::new(path), access);
        assert_eq!(by(&answers, "/a/b", AccessMode::Read), None);
        answers.keep(path, false, READ, None, &no(Verdict::Deny));
        assert_eq!(by(&answers, "/a/b", AccessMode::Read).as_deref(), Some("terminal"));
        assert_eq!(by(&answers, "/a/b", AccessMode::ReadWrite).as_deref(), Some("terminal"));
        assert_eq!(by(&answers, "/a/b", AccessMode::Write), None);
        assert_eq!(by(&answers, "/a/b/c", AccessMode::Read), None);
        answers.keep(Path::new("/n"), true, READ, None, &no(Verdict::Never));
        assert_eq!(by(&answers, "/n/m", AccessMode::Write).as_deref(), Some("terminal"));
    }

    #[test]
    fn a_no_is_remembered_and_never_means_never() {
        let mut answers = Answers::default();
        answers.keep(Path::new("/a"), false, READ, None, &answer(Verdict::Deny));
        assert_eq!(is(&answers, "/a", READ), Some(false));
        assert_eq!(is(&answers, "/a", WRITE), None);
        answers.keep(Path::new("/n"), true, READ, None, &answer(Verdict::Never));
        let yes = answer(Verdict::Allow(Scope::Directory));
        answers.keep(Path::new("/x"), false, WRITE, Some(Path::new("/")), &yes);
        assert_eq!(is(&answers, "/n/below", WRITE), Some(false), "whatever else was allowed");
    }
}
