//! Files outside the grants: no name, link, detour or descriptor leads there.

use crate::harness::fixture::{installed, unix_stream};
use crate::harness::{Attack, attack, attacks};

/// Reading the secret is the goal of most of these.
fn read(steps: &'static str) -> Attack {
    attack(steps).leaks().also_in_tmp()
}

fn change(steps: &'static str) -> Attack {
    attack(steps).changes()
}

attacks! {
    plain_names:
        read("read {out}/secret"),
        read("read-how {out}/secret"),
        change("write {out}/target");
    dot_dot:
        read("read {prj}/../outside/secret"),
        read("read ../outside/secret"),
        change("write {ro}/../outside/target");
    listing:
        attack("list {out}").also_in_tmp(),
        attack("list {home}/..");
    proc_self_root:
        read("read /proc/self/root{out}/secret"),
        read("read /proc/thread-self/root{out}/secret"),
        change("write /proc/self/root{out}/target");
    proc_self_cwd:
        read("read /proc/self/cwd/../outside/secret"),
        change("create /proc/self/cwd/../outside/new");
    chdir:
        read("chdir {out} , read secret"),
        read("chdir {out}/dir , read ../secret");
    cwd_is_not_granted: read("read secret").cwd("{out}").may_refuse();

    symlink_read:
        read("symlink {out}/secret {prj}/link , read {prj}/link"),
        read("symlink ../outside {prj}/link , read {prj}/link/secret");
    symlink_write:
        change("symlink {out}/target {prj}/link , write {prj}/link"),
        change("symlink {out}/new {prj}/link , overwrite {prj}/link");
    symlink_chain:
        read("symlink / {prj}/a , symlink a{out} {prj}/b , read {prj}/b/secret"),
        read("symlink /proc/self/root {prj}/a , read {prj}/a{out}/secret");
    symlink_race: read("symlink {prj}/own {prj}/flip , race {prj}/flip {prj}/own {out}/secret");

    held_directory:
        read("hold {out} , read-held secret"),
        change("hold {out} , create-held new"),
        read("hold {out} , enter-held , read secret"),
        read("hold / , read-held .{out}/secret");
    held_file_reopened:
        read("hold {out}/secret , reopen-held read"),
        change("hold {out}/target , reopen-held write");

    hard_link_in:
        read("link {out}/secret {prj}/link , read {prj}/link"),
        read("link-fd {out}/secret {prj}/link , read {prj}/link"),
        read("link-empty {out}/secret {prj}/link , read {prj}/link"),
        change("link {out}/target {prj}/link , write {prj}/link");
    hard_link_out:
        change("link {prj}/own {out}/link"),
        change("link-fd {prj}/own {ro}/link");
    rename_in:
        read("rename {out}/secret {prj}/taken , read {prj}/taken"),
        change("rename {out}/dir {prj}/taken"),
        change("rename {ro}/file {prj}/taken");
    rename_out:
        change("rename {prj}/own {out}/planted"),
        change("rename {prj}/sub {ro}/planted"),
        change("rename {prj}/own {out}/target");
    rename_exchange:
        change("exchange {prj}/own {out}/target"),
        change("exchange {prj}/sub {out}/dir"),
        change("exchange {prj}/own {ro}/file");
    rename_within_the_read_grant: change("rename {ro}/file {ro}/moved");
    rename_of_the_grant_itself:
        attack("rename {prj} {w}/outside/moved").changes(),
        attack("rename {ro} {out}/moved").changes();
    rename_of_a_parent_of_the_cwd:
        read("mkdir {prj}/a , mkdir {prj}/a/b , chdir {prj}/a/b , rename {prj}/a/b {prj}/b , read ../../outside/secret");

    truncate:
        change("truncate {out}/target"),
        change("truncate {ro}/file"),
        change("truncate /proc/self/root{out}/target");
    truncate_while_opening:
        change("open-trunc {out}/target"),
        change("open-trunc {ro}/file");
    create:
        change("create {out}/new"),
        change("create {ro}/new"),
        change("overwrite {ro}/file"),
        change("mkdir {ro}/new"),
        change("mkdir {out}/new"),
        change("mkfifo {out}/new"),
        change("mksock {out}/new"),
        change("symlink x {out}/new"),
        change("mkfifo {ro}/new"),
        change("mksock {ro}/new"),
        change("symlink x {ro}/new"),
        attack("tmpfile {out}"),
        attack("tmpfile {ro}");
    remove:
        change("unlink {out}/target"),
        change("unlink {ro}/file"),
        change("rmdir {ro}/dir"),
        change("unlink {out}/dir/target , rmdir {out}/dir");
    write_in_the_read_grant:
        change("write {ro}/file"),
        change("hold {ro}/file , reopen-held write");
    remove_of_an_outside_socket: change("unlink {out}/door").against(unix_stream("{out}/door"));

    inherited_descriptor: attack("inherited-read").leaks().descriptor("{out}/secret");
    inherited_directory:
        attack("inherited-dir secret").leaks().descriptor("{out}"),
        attack("inherited-chdir secret").leaks().descriptor("{out}");
    directory_on_stdin:
        attack("stdin-dir secret").leaks().input("{out}"),
        attack("stdin-dir ../outside/secret").leaks().input("{ro}");
    stdin_opened_again_for_writing:
        attack("stdin-reopen").changes().input("{out}/target"),
        attack("stdin-reopen").changes().input("{ro}/file");

    handles: attack("handle-reach");
    leases:
        attack("lease narrow {ro}/file"),
        attack("lease wide {ro}/file"),
        attack("dnotify {ro}");

    programs_outside:
        attack("exec {out}/tool status Seccomp none").against(installed("attacks", "{out}/tool")),
        attack("exec /proc/self/root{out}/tool status Seccomp none")
            .against(installed("attacks", "{out}/tool"));
    siblings_of_a_file_grant:
        read("read {out}/secret").flags("--read-file {out}/target"),
        change("unlink {out}/target").flags("--allow-file {out}/target"),
        change("create {out}/new").flags("--allow-file {out}/target"),
        change("write {out}/target").flags("--read-file {out}/target"),
        change("rename {out}/target {out}/moved").flags("--allow-file {out}/target"),
        change("overwrite {out}/dir/target").flags("--write-file {out}/target");
    reading_in_a_write_grant:
        read("read {out}/w/key").before("plant {out}/w/key {secret}").flags("--write {out}/w"),
        attack("list {out}/w").before("plant {out}/w/key {secret}").flags("--write {out}/w");
    programs_started_inside_are_confined_too:
        read("memfd read {out}/secret"),
        read("loader {prj}/copy read {out}/secret"),
        change("memfd write {out}/target");
}
