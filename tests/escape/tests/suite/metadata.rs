//! Files must not change through modes, owners, times, attributes or flags: not outside, not in a read grant.

use crate::harness::{Attack, Mode, attack, attacks};

fn change(steps: &'static str) -> Attack {
    attack(steps).changes()
}

/// One call on a file outside and on one of the read grant, by every route; outside, nothing can be opened.
macro_rules! routes {
    ($call:literal) => {
        [
            change(concat!("meta ", $call, " path {out}/target")),
            change(concat!("meta ", $call, " proc {out}/target")),
            change(concat!("meta ", $call, " new {out}/target")),
            change(concat!("meta ", $call, " path {ro}/file")),
            change(concat!("meta ", $call, " fd {ro}/file")),
            change(concat!("meta ", $call, " proc {ro}/file")),
            change(concat!("meta ", $call, " new {ro}/file")),
        ]
    };
}

#[test]
fn chmod() {
    crate::harness::check(&routes!("chmod"));
}

#[test]
fn chown() {
    crate::harness::check(&routes!("chown"));
}

#[test]
fn utimes() {
    crate::harness::check(&routes!("utimes"));
}

#[test]
fn setxattr() {
    crate::harness::check(&routes!("setxattr"));
}

#[test]
fn removexattr() {
    let marked = routes!("rmxattr").map(|attack| attack.before("mark {ro}/file , mark {out}/target"));
    crate::harness::check(&marked);
}

/// Without mounts, only a supervisor keeps metadata unchanged.
fn bare(attacks: [Attack; 7]) {
    crate::harness::check(&attacks.map(|attack| attack.bare().modes(&[Mode::Run])));
}

#[test]
fn chmod_without_namespaces() {
    bare(routes!("chmod"));
}

#[test]
fn chown_without_namespaces() {
    bare(routes!("chown"));
}

#[test]
fn utimes_without_namespaces() {
    bare(routes!("utimes"));
}

#[test]
fn xattrs_without_namespaces() {
    bare(routes!("setxattr"));
    bare(routes!("rmxattr").map(|attack| attack.before("mark {ro}/file , mark {out}/target")));
}

attacks! {
    directories:
        change("meta chmod path {ro}"),
        change("meta chmod fd {ro}/dir"),
        change("meta utimes path {out}"),
        change("meta chmod path {out}");
    through_symlinks:
        change("symlink {out}/target {prj}/link , meta chmod proc {prj}/link"),
        change("chdir {out} , meta chmod path target"),
        change("meta utimes path /proc/self/root{out}/target");
    without_namespaces:
        change("meta chmod path {ro}").bare().modes(&[Mode::Run]),
        change("meta utimes path {out}").bare().modes(&[Mode::Run]),
        change("symlink {out}/target {prj}/link , meta chmod proc {prj}/link").bare().modes(&[Mode::Run]),
        change("chdir {out} , meta chmod path target").bare().modes(&[Mode::Run]),
        change("meta-race chmod {prj}/own {out}/target").bare().modes(&[Mode::Run]),
        change("meta utimes path /proc/self/root{out}/target").bare().modes(&[Mode::Run]);
    flags:
        change("set-flags narrow {ro}/file"),
        change("set-flags wide {ro}/file"),
        change("set-fsx narrow {ro}/file"),
        change("set-fsx wide {ro}/file"),
        change("set-version {ro}/file");
    flags_by_path:
        change("set-attr {ro}/file"),
        change("set-attr {out}/target");
    mode_of_a_program_in_the_read_grant: change("make-setuid {ro}/file");
}
