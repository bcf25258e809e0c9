//! Denials, counted by kind: a flood is one line with a count.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::process;
use crate::report::{DeniedAttempt, RefusalReason, Refused};

/// Maximum number of kinds listed; further ones are only counted.
const MOST: usize = 1000;

/// Merges denials beyond the limit on requests: one line for all of one program.
pub(super) fn folded(attempt: DeniedAttempt, because: &RefusalReason) -> DeniedAttempt {
    match (because, attempt) {
        (RefusalReason::TooMany, DeniedAttempt::Open { .. }) => {
            DeniedAttempt::Other { what: "further requests".to_owned() }
        }
        (_, attempt) => attempt,
    }
}

#[derive(Debug, Default)]
pub(super) struct Refusals {
    kinds: HashMap<(DeniedAttempt, RefusalReason, PathBuf), usize>,
    list: Vec<Refused>,
    unlisted: u64,
}

impl Refusals {
    /// Counts a denial. `pid` is called only for a new line, because in a flood every read of `/proc` counts; it is
    /// returned then.
    pub(super) fn count(
        &mut self,
        attempt: DeniedAttempt,
        because: RefusalReason,
        program: PathBuf,
        pid: impl FnOnce() -> u32,
    ) -> Option<u32> {
        let key = (attempt, because, program);
        if let Some(refused) = self.kinds.get(&key).and_then(|at| self.list.get_mut(*at)) {
            refused.count += 1;
            return None;
        }
        // A process that has just died has no program any more: it counts with those that were refused the same.
        let is_same = |refused: &&mut Refused| refused.attempt == key.0 && refused.because == key.1;
        if key.2 == Path::new(process::UNKNOWN)
            && let Some(refused) = self.list.iter_mut().find(is_same)
        {
            refused.count += 1;
            return None;
        }
        if self.list.len() >= MOST {
            self.unlisted += 1;
            return None;
        }
        let (attempt, because, program) = key.clone();
        self.kinds.insert(key, self.list.len());
        let pid = pid();
        self.list.push(Refused { attempt, because, program, pid, count: 1 });
        Some(pid)
    }

    pub(super) fn list(&self) -> (Vec<Refused>, u64) {
        (self.list.clone(), self.unlisted)
    }
}

#[cfg(test)]
mod tests {
    use nono_policy::AccessMode;

    use super::*;

    #[test]
    fn a_flood_is_one_line_with_a_number() {
        let mut refusals = Refusals::default();
        let program = || PathBuf::from("/bin/a");
        let open =
            |n: usize| DeniedAttempt::Open { path: format!("/x/{n}").into(), access: AccessMode::Read };
        for n in 0..5000 {
            refusals.count(folded(open(n), &RefusalReason::TooMany), RefusalReason::TooMany, program(), || 7);
            refusals.count(open(0), RefusalReason::Answered { by: "a".into() }, program(), || 7);
        }
        refusals.count(open(0), RefusalReason::Answered { by: "a".into() }, process::UNKNOWN.into(), || 8);
        let (list, unlisted) = refusals.list();
        assert_eq!(list.iter().map(|refused| refused.count).collect::<Vec<_>>(), [5000, 5001]);
        assert_eq!(unlisted, 0);
        for n in 0..5000 {
            refusals.count(open(n), RefusalReason::Answered { by: "b".into() }, program(), || 7);
        }
        let (list, unlisted) = refusals.list();
        assert_eq!((list.len(), unlisted), (MOST, 5000 + 2 - MOST as u64));
    }
}
