//! Tools that are started for the first time: what they keep below the home folder is not there yet.

use super::finish::{Said, finish};
use super::world::World;
use super::{MODES, missing};

/// The script in a fresh home, under nono in each mode with these flags, `~` being the home.
fn everywhere(name: &str, needs: &[&str], flags: &[&str], script: &str, check: impl Fn(&World, &Said)) {
    if let Some(program) = missing(&World::new(), needs) {
        return nono_testkit::skip(&format!("{name}: {program} is not installed"));
    }
    for mode in MODES {
        let world = World::new();
        let home = world.path("home");
        let mut command = world.command("nono");
        command.args(mode.split_whitespace());
        command.args(flags.iter().map(|flag| flag.replace('~', home.to_str().unwrap())));
        command.args(["--", "bash", "-c", script]);
        let said = finish(command);
        assert_eq!(said.status, Some(0), "nono {mode}: {said}");
        check(&world, &said);
    }
}

/// The logs are the first thing npm writes, the packed cache the next.
#[test]
fn npm_makes_its_cache() {
    let script = "mkdir lib && (cd lib && npm init -y > ../init && npm pack --silent) && \
                  npm cache add ./lib/lib-1.0.0.tgz && npm ls && ls ~/.npm";
    everywhere("npm", &["npm", "node"], &["-p", "node-dev"], script, |world, said| {
        assert!(said.output.lines().any(|line| line == "_cacache"), "{said}");
        assert!(said.output.lines().any(|line| line == "_logs"), "{said}");
        assert!(world.path("home/.npm/_cacache").is_dir(), "it stays for the next run: {said}");
    });
}

/// Where nothing was written, nothing is left.
#[test]
fn what_npm_did_not_need_is_gone_again() {
    everywhere("sh", &["sh"], &["-p", "node-dev"], "test -d ~/.npm", |world, said| {
        let left = world.path("home/.npm").exists();
        // `wrap` becomes the command, so that no process is left to remove it.
        assert!(!left || world.path("home/.npm").read_dir().unwrap().next().is_none(), "{said}");
    });
}

#[test]
fn gpg_makes_its_keyring() {
    let flags = ["--bypass-protection", "~/.gnupg", "--allow", "~/.gnupg"];
    everywhere("gpg", &["gpg"], &flags, "gpg --list-keys && gpg --list-keys", |world, said| {
        assert!(world.path("home/.gnupg/trustdb.gpg").is_file(), "{said}");
        assert!(world.path("home/.gnupg/pubring.kbx").is_file(), "{said}");
    });
}
