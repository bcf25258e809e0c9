//! Selection of a session by full id, name, or unique prefix of the id.

/// A session that can be selected.
pub(crate) trait SessionRef {
    fn id(&self) -> &str;
    fn name(&self) -> Option<&str>;
}

/// The session with exactly this id, otherwise the first with this name.
pub(crate) fn exact<T: SessionRef>(sessions: &[T], text: &str) -> Option<usize> {
    let named = || sessions.iter().position(|session| session.name() == Some(text));
    sessions.iter().position(|session| session.id() == text).or_else(named)
}

/// The sessions whose id begins with `text`.
pub(crate) fn beginning<T: SessionRef>(sessions: Vec<T>, text: &str) -> Vec<T> {
    sessions.into_iter().filter(|session| !text.is_empty() && session.id().starts_with(text)).collect()
}

/// Sort key by start of the session. Within one second the numbers in the ids decide, which rise with the process ids.
pub(crate) fn age(started: &str, id: &str) -> (String, Vec<u64>, String) {
    let numbers = id.split('-').map(|part| part.parse().unwrap_or(0)).collect();
    (started.to_owned(), numbers, id.to_owned())
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
    fn numbers_are_compared_as_numbers() {
        let moment = "2026-01-01T00:00:00Z";
        assert!(age(moment, "20260101-000000-9") < age(moment, "20260101-000000-10"));
        assert!(age(moment, "20260101-000000-10") < age("2026-01-01T00:00:01Z", "20260101-000001-2"));
    }
}
