//! Puts requests to the approver, one at a time, and carries out the answers.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use nono_policy::AccessMode;

use super::CheckpointAccess;
use super::call::access;
use super::decision_log::AskedAbout;
use super::job::Waiter;
use super::pin_path::{OpenTarget, PinnedKind};
use super::question_queue::Pending;
use super::shared::MediatorShared;
use crate::approval::{
    ApprovalAnswer, ApprovalBackend, ApprovalError, Asker, Question, Subject, Verdict, Waiting,
};
use crate::report::RefusalReason;
use crate::request_service::{RequestFailure, StillWanted};
use crate::terminal_lease::Lease;
use crate::urls::{self, Urls};

impl MediatorShared {
    /// Asks until the session is over.
    pub(super) fn ask_in_turn(&self) {
        while let Some(pending) = self.questions.next() {
            let answer = self.ask_approver(&pending);
            let joined = self.questions.answered();
            let Pending { folder, mut waiters, .. } = pending;
            if matches!(answer, Err(ApprovalError::Withdrawn)) {
                // The first waiter is gone; for those that joined later it was not answered.
                for waiter in joined {
                    self.consider(waiter);
                }
                continue;
            }
            waiters.extend(joined);
            match answer {
                Ok(answer) => self.carry_out(waiters, folder.as_deref(), &answer),
                Err(error) => {
                    self.note_failure(&error);
                    for waiter in waiters {
                        self.refuse_waiter(waiter, RefusalReason::NoAnswer { why: error.to_string() });
                    }
                }
            }
        }
    }

    /// Records that no answer could be had, which is a denial with an entry of its own.
    fn note_failure(&self, error: &ApprovalError) {
        match error {
            ApprovalError::Failed { backend, why } => self.journal.backend_failed(backend, why),
            ApprovalError::NoTerminal => self.journal.backend_failed("terminal", &error.to_string()),
            ApprovalError::Withdrawn => {}
        }
    }

    fn ask_approver(&self, pending: &Pending) -> Result<ApprovalAnswer, ApprovalError> {
        let wanted = || pending.waiters.iter().any(|waiter| waiter.open.is_wanted(&self.listener));
        if !wanted() {
            return Err(ApprovalError::Withdrawn);
        }
        // An answer given since may have settled it.
        if let Some(first) = pending.waiters.first()
            && let Some(answered) = self.answers().look_up(&first.path, first.rights)
        {
            return Ok(answered.into_answer());
        }
        let Some(backend) = &self.backend else { return Err(ApprovalError::NoTerminal) };
        self.put_to(&**backend, &pending.question, &wanted)
    }

    fn put_to(
        &self,
        backend: &dyn ApprovalBackend,
        question: &Question,
        wanted: &StillWanted<'_>,
    ) -> Result<ApprovalAnswer, ApprovalError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.asked.fetch_add(1, Ordering::Relaxed);
        backend.decide(question, &RequestWait { shared: self, wanted })
    }

    /// Asks for approval of a restore, each time anew.
    pub(super) fn agree_to_restore(
        &self,
        asker: &Asker,
        snapshot: u64,
        paths: &[PathBuf],
        wanted: &StillWanted<'_>,
    ) -> Result<(), RequestFailure> {
        let subject = Subject::Restore { snapshot, paths: paths.to_vec() };
        let Some(backend) = &self.backend else { return Err(ApprovalError::NoTerminal.into()) };
        self.agree(&**backend, asker, subject, paths, wanted)
    }

    /// Asks for approval of a restore of a project to a checkpoint.
    pub(super) fn agree_to_checkpoint(
        &self,
        history: &CheckpointAccess,
        asker: &Asker,
        subject: Subject,
        wanted: &StillWanted<'_>,
    ) -> Result<(), RequestFailure> {
        let paths = match &subject {
            Subject::RestoreCheckpoint { project, paths, .. } if paths.is_empty() => vec![project.clone()],
            Subject::RestoreCheckpoint { paths, .. } => paths.clone(),
            _ => return Err(RequestFailure::NotRestore),
        };
        self.agree(&*history.backend, asker, subject, &paths, wanted)
    }

    fn agree(
        &self,
        backend: &dyn ApprovalBackend,
        asker: &Asker,
        subject: Subject,
        paths: &[PathBuf],
        wanted: &StillWanted<'_>,
    ) -> Result<(), RequestFailure> {
        let id = self.questions.may_ask().ok_or(RequestFailure::TooMany)?;
        let question = Question { id, subject, asker: asker.clone(), reason: None };
        let answer = self.put_to(backend, &question, wanted).inspect_err(|error| self.note_failure(error))?;
        let everything = [PathBuf::from("/")];
        for path in if paths.is_empty() { &everything } else { paths } {
            let asker = asker.clone();
            let asked =
                AskedAbout { path, access: AccessMode::Write, asker, reason: None, what: Some("restore") };
            self.journal.answered(&asked, &answer)?;
        }
        match answer.verdict {
            Verdict::Allow(_) => Ok(()),
            Verdict::Deny | Verdict::Never => Err(RequestFailure::Denied { by: answer.by }),
        }
    }

    /// Whether the user may be asked about this address, and the number of the request.
    fn may_open(&self, url: &str) -> Result<(&Urls, u64), RequestFailure> {
        let urls = self.urls.as_ref().ok_or(RequestFailure::NoUrls)?;
        urls::check(url).map_err(RequestFailure::Url)?;
        Ok((urls, self.questions.may_ask().ok_or(RequestFailure::TooMany)?))
    }

    /// Asks about each address, each time. The decision is on disk before the browser starts.
    pub(super) fn open_url(
        &self,
        asker: &Asker,
        url: &str,
        wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        let refused = |why: &RequestFailure| self.journal.url_refused(asker, url, &why.to_string());
        let (urls, id) = self.may_open(url).inspect_err(refused)?;
        let subject = Subject::OpenUrl { url: url.to_owned() };
        let question = Question { id, subject, asker: asker.clone(), reason: None };
        let answer = self
            .put_to(&*urls.backend, &question, wanted)
            .inspect_err(|error| self.note_failure(error))
            .map_err(RequestFailure::from)
            .inspect_err(refused)?;
        let record = |error| self.journal.url(asker, url, &answer, error);
        record(None)?;
        if !matches!(answer.verdict, Verdict::Allow(_)) {
            return Err(RequestFailure::Denied { by: answer.by });
        }
        if let Err(why) = urls.opener.open(url) {
            record(Some(why.to_string()))?;
            return Err(why.into());
        }
        Ok(answer.by)
    }

    /// Carries out an answer of a rule without remembering it, so that a rule ends when it says.
    pub(super) fn answer_at_once(&self, waiter: Waiter, folder: Option<&Path>, answer: &ApprovalAnswer) {
        if let Err(error) = self.journal.answered_by_rule(&asked(&waiter), answer) {
            let why = RequestFailure::from(error).to_string();
            return self.refuse_waiter(waiter, RefusalReason::Failed { why });
        }
        self.answers().report(&waiter.path, is_dir(&waiter), waiter.rights, folder, answer);
        self.obey(waiter, answer);
    }

    fn carry_out(&self, waiters: Vec<Waiter>, folder: Option<&Path>, answer: &ApprovalAnswer) {
        if let Some(first) = waiters.first() {
            // On disk before it takes effect or is remembered.
            if let Err(error) = self.journal.answered(&asked(first), answer) {
                let why = RequestFailure::from(error).to_string();
                for waiter in waiters {
                    self.refuse_waiter(waiter, RefusalReason::Failed { why: why.clone() });
                }
                return;
            }
            self.answers().keep(&first.path, is_dir(first), first.rights, folder, answer);
        }
        for waiter in waiters {
            self.obey(waiter, answer);
        }
    }

    fn obey(&self, waiter: Waiter, answer: &ApprovalAnswer) {
        match answer.verdict {
            Verdict::Allow(_) => self.grant(waiter, &answer.by),
            Verdict::Deny | Verdict::Never => {
                self.refuse_waiter(waiter, RefusalReason::Answered { by: answer.by.clone() });
            }
        }
    }
}

fn asked(waiter: &Waiter) -> AskedAbout<'_> {
    AskedAbout {
        path: &waiter.path,
        access: access(waiter.rights),
        asker: waiter.open.asker(),
        reason: waiter.open.reason(),
        what: None,
    }
}

fn is_dir(waiter: &Waiter) -> bool {
    matches!(waiter.target, OpenTarget::There { kind: PinnedKind::Directory, .. })
}

/// Context of a request, for its approver.
struct RequestWait<'a> {
    shared: &'a MediatorShared,
    wanted: &'a StillWanted<'a>,
}

impl Waiting for RequestWait<'_> {
    fn still_wanted(&self) -> bool {
        (self.wanted)()
    }

    fn terminal(&self) -> Option<Lease> {
        self.shared.leases.as_ref()?.lend()
    }
}
