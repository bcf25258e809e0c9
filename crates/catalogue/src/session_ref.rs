//! Ids of sessions: new ones, selection of a session by full id, name, or unique prefix of the id, and the order of
//! sessions.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use nono_sys::process;

/// Number of ids made by this process.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A unique id for a session, or for a restore, which has its own log. A library may make several ids in one process
/// within a second.
pub fn new_id() -> String {
    let stamp = format!("{}-{}", process::timestamp(), std::process::id());
    match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => stamp,
        earlier => format!("{stamp}-{earlier}"),
    }
}

/// A session that can be selected.
pub trait SessionRef {
    fn id(&self) -> &str;
    fn name(&self) -> Option<&str>;
}

/// The session with exactly this id, otherwise the first with this name.
pub fn exact<T: SessionRef>(sessions: &[T], text: &str) -> Option<usize> {
    let named = || sessions.iter().position(|session| session.name() == Some(text));
    sessions.iter().position(|session| session.id() == text).or_else(named)
}

/// The sessions whose id begins with `text`.
pub fn beginning<T: SessionRef>(sessions: Vec<T>, text: &str) -> Vec<T> {
    sessions.into_iter().filter(|session| !text.is_empty() && session.id().starts_with(text)).collect()
}

/// Sort key by start of the session. Within one second the numbers in the ids decide, which rise with the process ids.
pub fn age(started: &str, id: &str) -> (String, Vec<u64>, String) {
    let numbers = id.split('-').map(|part| part.parse().unwrap_or(0)).collect();
    (started.to_owned(), numbers, id.to_owned())
}

/// Sort key by start of the session whose folder this is. Within one second the creation of the folder decides: process
/// ids begin again at the lowest when all are used.
pub fn age_in(dir: &Path, started: &str, id: &str) -> impl Ord + use<> {
    let created: Option<SystemTime> = dir.metadata().and_then(|folder| folder.created()).ok();
    (started.to_owned(), created, age(started, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(&'static str, Option<&'static str>);

    impl SessionRef for One {
        fn id(&self) -> &str {
            self.0
        }

        fn name(&self) -> Option<&str> {
            self.1
        }
    }

    #[test]
    fn an_id_before_a_name_before_a_beginning() {
        let sessions = || vec![One("20-1", None), One("20-12", Some("20-1")), One("21-3", Some("mine"))];
        assert_eq!(exact(&sessions(), "20-1"), Some(0));
        assert_eq!(exact(&sessions(), "mine"), Some(2));
        assert_eq!(exact(&sessions(), "20"), None);
        let begins = |text| beginning(sessions(), text).iter().map(|one| one.0).collect::<Vec<_>>();
        assert_eq!(begins("20"), ["20-1", "20-12"]);
        assert_eq!(begins("21"), ["21-3"]);
        assert!(begins("").is_empty() && begins("3").is_empty());
    }

    #[test]
    fn a_session_with_a_lower_process_id_in_the_same_second_is_newer_if_it_began_later() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let dir = tmp.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            dir
        };
        let created = |dir: &Path| dir.metadata().unwrap().created().unwrap();
        let first = folder("first");
        let mut names = 0..;
        // The clock of a filesystem has steps of some milliseconds.
        let second = loop {
            let next = folder(&names.next().unwrap().to_string());
            if created(&next) > created(&first) {
                break next;
            }
        };
        let moment = "2026-01-01T00:00:00Z";
        let key = |dir: &Path, id: &str| age_in(dir, moment, id);
        assert!(key(&first, "20260101-000000-32767") < key(&second, "20260101-000000-301"));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let moment = "2026-01-01T00:00:00Z";
        assert!(age(moment, "20260101-000000-9") < age(moment, "20260101-000000-10"));
        assert!(age(moment, "20260101-000000-10") < age("2026-01-01T00:00:01Z", "20260101-000001-2"));
    }
}
