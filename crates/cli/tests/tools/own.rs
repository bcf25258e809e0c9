//! Tools that need more than a script: a toolchain in the home folder, files of root.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::finish::finish;
use super::world::{ORDINARY, World, is_root};
use nono_testkit::skip;

use super::MODES;

fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

fn readable(world: &World, path: &Path) -> bool {
    let mut command = world.command("test");
    command.arg("-r").arg(path).status().is_ok_and(|status| status.success())
}

/// A crate with a test and an example, without dependencies.
const CARGO: &str = "set -e
cargo init -q --lib --vcs none --name hello
mkdir -p examples
echo 'fn main() { println!(\"sum {}\", hello::add(40, 2)); }' > examples/sum.rs
cargo build -q --offline
cargo run -q --offline --example sum
cargo test -q --offline 2>&1 | grep -o 'test result: ok. 1 passed'
";

#[test]
fn cargo_builds_and_tests() {
    let Some(sysroot) = sysroot() else { return skip("cargo: rustc is not installed") };
    // A toolchain in a closed home folder is the tester's own, and so is the run then.
    let ordinary = readable(&World::new(), &sysroot.join("bin/cargo"));
    println!("as {}", if ordinary || !is_root() { "an ordinary user" } else { "root" });
    for mode in std::iter::once(None).chain(MODES.map(Some)) {
        let world = if ordinary { World::new() } else { World::of(None) };
        world.file("work/.script", CARGO, 0o644);
        let mut command = world.command(if mode.is_some() { "nono" } else { "bash" });
        if let Some(mode) = mode {
            command.args(mode.split_whitespace()).arg("--allow").arg(world.path("work"));
            command.arg("--read").arg(&sysroot).args(["--env", "CARGO_HOME", "--", "bash"]);
        }
        command.env(
            "PATH",
            format!("{}:{}:/usr/bin:/bin", sysroot.join("bin").display(), world.path("bin").display()),
        );
        command.env("CARGO_HOME", world.path("work/.cargo-home")).arg(".script");
        let said = finish(command);
        assert_eq!(said.output, "sum 42\ntest result: ok. 1 passed\n", "{mode:?}: {said}");
    }
}

/// In a mount namespace of its own: the user gets a name, and ssh's configuration a file that root owns, which is
/// included and therefore checked.
const SSH: &str = r#"set -e
printf 'Host *\n  User included\n' > "$W/tmp/included.conf"
cp /etc/passwd "$W/tmp/passwd"
printf 'ordinary:x:%s:%s::%s:/bin/bash\n' "$ID" "$ID" "$HOME" >> "$W/tmp/passwd"
printf 'Include /etc/ssh/ssh_config.d/*.conf\n' > "$W/tmp/ssh_config"
chmod 644 "$W"/tmp/*
mount --bind "$W/tmp/passwd" /etc/passwd
mount -t tmpfs none /etc/ssh/ssh_config.d
cp "$W/tmp/included.conf" /etc/ssh/ssh_config.d/
mount --bind "$W/tmp/ssh_config" /etc/ssh/ssh_config
exec setpriv --reuid "$ID" --regid "$ID" --clear-groups "$@"
"#;

#[test]
fn ssh_reads_configuration_of_root() {
    if !is_root() {
        return skip("ssh with root's configuration: only root can prepare it");
    }
    if !Path::new("/etc/ssh/ssh_config").exists() || !Path::new("/etc/ssh/ssh_config.d").is_dir() {
        return skip("ssh with root's configuration: ssh is not installed (apt-get install openssh-client)");
    }
    for mode in std::iter::once(None).chain(MODES.map(Some)) {
        let world = World::new();
        let mut command = world.command_of_tester("unshare");
        command.args(["-m", "sh", "-c", SSH, "sh"]);
        if let Some(mode) = mode {
            command.arg("nono").args(mode.split_whitespace()).arg("--");
        }
        command
            .args(["sh", "-c", "ssh -V && ssh -G host"])
            .env("W", world.path(""))
            .env("ID", ORDINARY.to_string());
        let said = finish(command);
        assert!(said.output.lines().any(|line| line == "user included"), "{mode:?}: {said}");
    }
}
