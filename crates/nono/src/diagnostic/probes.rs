//! Files that programs look for at every start and do without: a denial of one explains nothing and is not worth a
//! question.
//!
//! The footer hides them unless `verbose` is set; the JSON never does.

use std::path::{Path, PathBuf};

use nono_policy::is_within;
use nono_supervisor::approval::{Object, Question, Subject};
use nono_supervisor::report::DeniedAttempt;

use nono_policy::glob::{Pattern, names};

/// Path patterns, each with the programs that look for it.
const PROBES: &[(&str, &str)] = &[
    // The loader and the C library.
    ("/etc/ld.so.preload", "the loader"),
    ("/etc/ld.so.nohwcap", "the loader"),
    ("/etc/suid-debug", "the loader"),
    ("/etc/malloc.conf", "memory allocators"),
    ("/etc/selinux/**", "libselinux"),
    ("/sys/fs/selinux/**", "libselinux"),
    ("/var/lib/extrausers/**", "user lookups"),
    ("/var/db/*.db", "user lookups"),
    ("/run/nscd/**", "user lookups"),
    ("/var/run/nscd/**", "user lookups"),
    ("/run/systemd/userdb/**", "user lookups"),
    ("/etc/userdb/**", "user lookups"),
    // Language.
    ("/usr/**/locale/**", "the C library"),
    ("/usr/**/locale-langpack/**", "gettext"),
    ("/usr/**/gconv/**", "iconv"),
    ("/var/cache/locale/**", "the C library"),
    ("**/.XCompose", "input methods"),
    // Terminals.
    ("/etc/terminfo/**", "ncurses"),
    ("/lib/terminfo/**", "ncurses"),
    ("/usr/**/terminfo/**", "ncurses"),
    ("**/.terminfo", "ncurses"),
    ("**/.terminfo/**", "ncurses"),
    ("**/.termcap", "ncurses"),
    ("**/.inputrc", "readline"),
    ("**/.editrc", "libedit"),
    // Runtimes that size themselves or look for what a machine may have.
    ("/sys/kernel/mm/hugepages/**", "memory allocators"),
    ("/sys/devices/system/cpu/**", "runtimes"),
    ("/sys/class/dmi/**", "runtimes"),
    // The folder itself, for the names in it.
    ("/etc", "programs that tell distributions apart"),
    ("/etc/machine-id", "programs that tell machines apart"),
    ("/var/lib/dbus/machine-id", "programs that tell machines apart"),
];

/// Whether the attempt is a read of something that hardly any program needs.
pub(super) fn is_probe(attempt: &DeniedAttempt) -> bool {
    match attempt {
        DeniedAttempt::Open { path, access } => !access.writes() && is_listed(path),
        DeniedAttempt::Socket { path } => is_listed(path),
        DeniedAttempt::Metadata { .. } | DeniedAttempt::Network { .. } | DeniedAttempt::Other { .. } => false,
    }
}

/// Whether a question is not worth asking. `places` are the command's working directory, its state, and paths opened by
/// name: programs list every folder above them in search of a file that marks a project, and work without the answer.
pub fn is_no_question(question: &Question, places: &[PathBuf]) -> bool {
    match &question.subject {
        // A request with a reason is deliberate.
        Subject::Access { path, access, object, .. } if question.reason.is_none() => {
            let is_climbed =
                || *object == Object::Directory && places.iter().any(|place| is_within(place, path));
            !access.writes() && (is_listed(path) || is_climbed())
        }
        _ => false,
    }
}

fn is_listed(path: &Path) -> bool {
    PROBES.iter().any(|(text, _)| matches(text, path))
}

/// Whether a table's pattern matches a path. A test checks that all patterns are valid.
pub(super) fn matches(text: &str, path: &Path) -> bool {
    Pattern::parse(names(Path::new(text)).into_iter()).is_ok_and(|pattern| pattern.matches(&names(path)))
}

#[cfg(test)]
mod tests {
    use nono_policy::AccessMode;
    use nono_supervisor::approval::Asker;

    use super::*;

    #[test]
    fn the_table_is_good() {
        for (text, who) in PROBES {
            assert!(Pattern::parse(names(Path::new(text)).into_iter()).is_ok(), "{text}");
            assert!(text.starts_with('/') || text.starts_with("**/"), "{text}");
            assert!(!who.is_empty());
        }
    }

    #[test]
    fn looking_is_a_probe_and_changing_is_not() {
        let open = |path: &str, access| DeniedAttempt::Open { path: path.into(), access };
        for path in [
            "/etc/ld.so.preload",
            "/usr/lib/locale/locale-archive",
            "/home/me/.terminfo/x/xterm",
            "/usr/share/terminfo/x",
        ] {
            assert!(is_probe(&open(path, AccessMode::Read)), "{path}");
            assert!(!is_probe(&open(path, AccessMode::ReadWrite)), "{path}");
        }
        for path in ["/home/me/terminfo", "/etc/shadow", "/home/me/.ssh/id", "/etc/ld.so.preload/x"] {
            assert!(!is_probe(&open(path, AccessMode::Read)), "{path}");
        }
        assert!(is_probe(&DeniedAttempt::Socket { path: "/run/nscd/socket".into() }));
        assert!(!is_probe(&DeniedAttempt::Socket { path: "/run/docker.sock".into() }));
    }

    #[test]
    fn folders_above_are_climbed_and_files_in_them_are_asked_about() {
        let places = [PathBuf::from("/home/me/project")];
        let is_none = |path: &str, object, access, reason: Option<&str>| {
            let (path, written, folder) = (path.into(), None, None);
            let subject = Subject::Access { path, written, access, object, folder };
            let asker = Asker { program: "/usr/bin/node".into(), pid: 7 };
            let question = Question { id: 1, subject, asker, reason: reason.map(str::to_owned) };
            is_no_question(&question, &places)
        };
        let (folder, file) = (Object::Directory, Object::File);
        for path in ["/home/me", "/home", "/"] {
            assert!(is_none(path, folder, AccessMode::Read, None), "{path}");
            assert!(!is_none(path, folder, AccessMode::Read, Some("task")), "{path}");
            assert!(!is_none(path, folder, AccessMode::ReadWrite, None), "{path}");
        }
        for path in ["/home/me/other", "/home/me/project/sub", "/srv"] {
            assert!(!is_none(path, folder, AccessMode::Read, None), "{path}");
        }
        assert!(!is_none("/home/me/package.json", file, AccessMode::Read, None));
    }
}
