//! Putting questions, one at a time, and doing what the answers say.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::job::Waiter;
use super::questions::Pending;
use super::resolve::{Kind, Target};
use super::shared::Shared;
use crate::approval::{Answer, ApprovalError, Asker, Question, Subject, Verdict, Waiting};
use crate::report::{Because, StillWanted};
use crate::stage::Lease;

impl Shared {
    /// Until it is over.
    pub(super) fn ask_in_turn(&self) {
        while let Some(pending) = self.questions.next() {
            let answer = self.put_to_somebody(&pending);
            let joined = self.questions.answered();
            let Pending { folder, mut waiters, .. } = pending;
            if matches!(answer, Err(ApprovalError::Withdrawn)) {
                // Who came first is gone; for those who came after, it was not answered.
                for waiter in joined {
                    self.consider(waiter);
                }
                continue;
            }
            waiters.extend(joined);
            match answer {
                Ok(answer) => self.carry_out(waiters, folder.as_deref(), &answer),
                Err(error) => {
                    for waiter in waiters {
                        self.refuse_waiter(waiter, Because::NoAnswer { why: error.to_string() });
                    }
                }
            }
        }
    }

    fn put_to_somebody(&self, pending: &Pending) -> Result<Answer, ApprovalError> {
        let surroundings = Surroundings { shared: self, waiters: &pending.waiters };
        if !surroundings.still_wanted() {
            return Err(ApprovalError::Withdrawn);
        }
        // An answer given since it was put may have settled it.
        if let Some(first) = pending.waiters.first()
            && let Some(answered) = self.answers().look_up(&first.path, first.rights)
        {
            return Ok(answered.into_answer());
        }
        self.put(&pending.question, &surroundings)
    }

    fn put(&self, question: &Question, surroundings: &dyn Waiting) -> Result<Answer, ApprovalError> {
        let Some(backend) = &self.backend else { return Err(ApprovalError::NoTerminal) };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.asked.fetch_add(1, Ordering::Relaxed);
        backend.decide(question, surroundings)
    }

    /// A restore happens only if somebody agrees, each time anew.
    pub(super) fn agree_to_restore(
        &self,
        asker: &Asker,
        snapshot: u64,
        paths: &[PathBuf],
        wanted: &StillWanted<'_>,
    ) -> Result<(), String> {
        let id = self.questions.may_ask().ok_or("too many questions")?;
        let subject = Subject::Restore { snapshot, paths: paths.to_vec() };
        let question = Question { id, subject, asker: asker.clone(), reason: None };
        match self.put(&question, &Patient { shared: self, wanted }) {
            Ok(Answer { verdict: Verdict::Allow(_), .. }) => Ok(()),
            Ok(Answer { by, .. }) => Err(format!("denied by {by}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// It is asked for again the next time, so that a rule ends when it says.
    pub(super) fn answer_at_once(&self, waiter: Waiter, folder: Option<&Path>, answer: &Answer) {
        self.answers().report(&waiter.path, is_dir(&waiter), waiter.rights, folder, answer);
        self.obey(waiter, answer);
    }

    fn carry_out(&self, waiters: Vec<Waiter>, folder: Option<&Path>, answer: &Answer) {
        if let Some(first) = waiters.first() {
            self.answers().keep(&first.path, is_dir(first), first.rights, folder, answer);
        }
        for waiter in waiters {
            self.obey(waiter, answer);
        }
    }

    fn obey(&self, waiter: Waiter, answer: &Answer) {
        match answer.verdict {
            Verdict::Allow(_) => self.grant(waiter, &answer.by),
            Verdict::Deny | Verdict::Never => {
                self.refuse_waiter(waiter, Because::Answered { by: answer.by.clone() });
            }
        }
    }
}

fn is_dir(waiter: &Waiter) -> bool {
    matches!(waiter.target, Target::There { kind: Kind::Directory, .. })
}

struct Surroundings<'a> {
    shared: &'a Shared,
    waiters: &'a [Waiter],
}

impl Waiting for Surroundings<'_> {
    fn still_wanted(&self) -> bool {
        self.waiters.iter().any(|waiter| waiter.open.is_wanted(&self.shared.listener))
    }

    fn terminal(&self) -> Option<Lease> {
        self.shared.stage.as_ref()?.lend()
    }
}

/// Around a question that no call waits for.
struct Patient<'a> {
    shared: &'a Shared,
    wanted: &'a StillWanted<'a>,
}

impl Waiting for Patient<'_> {
    fn still_wanted(&self) -> bool {
        (self.wanted)()
    }

    fn terminal(&self) -> Option<Lease> {
        self.shared.stage.as_ref()?.lend()
    }
}
