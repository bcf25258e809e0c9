//! Which variables reach the command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use snapbox::str;

use super::world::World;
use nono_testkit::process::finish;

fn caller() -> World {
    World::new()
        .with("FOO", Some("bar"))
        .with("GH_TOKEN", Some("secret"))
        .with("LD_PRELOAD_NOT", Some("x"))
        .with("BASH_ENV", Some("/x"))
        .with("GIT_SSH_COMMAND", Some("x"))
        .with("PYTHONSTARTUP", Some("x"))
        .with("NODE_OPTIONS", Some("x"))
        .with("NONO_OTHER", Some("x"))
        .with("TERM", Some("dumb"))
}

#[test]
fn only_listed_variables_reach_the_command() {
    caller().golden(
        &[
            "nono run -- env",
            "nono wrap -- env",
            "nono run --env FOO --env GH_TOKEN --env NEW=1 --env EMPTY= --env UNSET -- env",
            "nono run --env-all -- env",
        ],
        str![[r#"
$ nono run -- env
HOME=[TMP]/home
LC_ALL=C.UTF-8
NONO_CAP_FILE=[TMP]/tmp/nono-[UID]/[SESSION]/capabilities.json
NONO_REQUEST_SOCK=[TMP]/tmp/nono-[UID]/[SESSION]/request.sock
NONO_SESSION=[SESSION]
PATH=[TMP]/bin:/usr/bin:/bin
TERM=dumb
TMPDIR=[TMP]/tmp/nono-[UID]/[SESSION]/tmp
TMUX_TMPDIR=[TMP]/tmp/nono-[UID]/[SESSION]/tmp
TZ=UTC
XDG_CACHE_HOME=[TMP]/home/.cache
XDG_CONFIG_HOME=[TMP]/home/.config
XDG_DATA_HOME=[TMP]/home/.local/share
XDG_STATE_HOME=[TMP]/home/.local/state
$ nono wrap -- env
HOME=[TMP]/home
LC_ALL=C.UTF-8
NONO_CAP_FILE=[TMP]/tmp/nono-[UID]/[SESSION]/capabilities.json
NONO_SESSION=[SESSION]
PATH=[TMP]/bin:/usr/bin:/bin
TERM=dumb
TMPDIR=[TMP]/tmp/nono-[UID]/[SESSION]/tmp
TMUX_TMPDIR=[TMP]/tmp/nono-[UID]/[SESSION]/tmp
TZ=UTC
XDG_CACHE_HOME=[TMP]/home/.cache
XDG_CONFIG_HOME=[TMP]/home/.config
XDG_DATA_HOME=[TMP]/home/.local/share
XDG_STATE_HOME=[TMP]/home/.local/state
$ nono run --env FOO --env GH_TOKEN --env NEW=1 --env EMPTY= --env UNSET -- env
EMPTY=
FOO=bar
GH_TOKEN=secret
HOME=[TMP]/home
LC_ALL=C.UTF-8
NEW=1
NONO_CAP_FILE=[TMP]/tmp/nono-[UID]/[SESSION]/capabilities.json
NONO_REQUEST_SOCK=[TMP]/tmp/nono-[UID]/[SESSION]/request.sock
NONO_SESSION=[SESSION]
PATH=[TMP]/bin:/usr/bin:/bin
TERM=dumb
TMPDIR=[TMP]/tmp/nono-[UID]/[SESSION]/tmp
TMUX_TMPDIR=[TMP]/tmp/nono-[UID]/[SESSION]/tmp
TZ=UTC
XDG_CACHE_HOME=[TMP]/home/.cache
XDG_CONFIG_HOME=[TMP]/home/.config
XDG_DATA_HOME=[TMP]/home/.local/share
XDG_STATE_HOME=[TMP]/home/.local/state
$ nono run --env-all -- env
FOO=bar
GH_TOKEN=secret
HOME=[TMP]/home
LC_ALL=C.UTF-8
NONO_CAP_FILE=[TMP]/tmp/nono-[UID]/[SESSION]/capabilities.json
NONO_REQUEST_SOCK=[TMP]/tmp/nono-[UID]/[SESSION]/request.sock
NONO_SESSION=[SESSION]
PATH=[TMP]/bin:/usr/bin:/bin
PWD=[TMP]/work
TERM=dumb
TMPDIR=[TMP]/tmp
TZ=UTC
XDG_CACHE_HOME=[TMP]/home/.cache
XDG_CONFIG_HOME=[TMP]/home/.config
XDG_DATA_HOME=[TMP]/home/.local/share
XDG_RUNTIME_DIR=[TMP]/run
XDG_STATE_HOME=[TMP]/home/.local/state

"#]],
    );
}

#[test]
fn variables_that_inject_code_are_refused() {
    caller().golden(
        &[
            "nono run --env LD_PRELOAD=/x -- true",
            "nono run --env LD_LIBRARY_PATH -- true",
            "nono run --env BASH_ENV -- true",
            "nono run --env NODE_OPTIONS=x -- true",
            "nono run --env GIT_SSH_COMMAND=x -- true",
            "nono run --env NONO_CAP_FILE=x -- true",
            "nono run --env =x -- true",
            "nono run --env '' -- true",
            "nono run --env 'A B=x' -- true",
        ],
        str![[r#"
$ nono run --env LD_PRELOAD=/x -- true
! [nono] error: the environment variable LD_PRELOAD can inject code and is never passed on; leave it out
= exit 125
$ nono run --env LD_LIBRARY_PATH -- true
! [nono] error: the environment variable LD_LIBRARY_PATH can inject code and is never passed on; leave it out
= exit 125
$ nono run --env BASH_ENV -- true
! [nono] error: the environment variable BASH_ENV can inject code and is never passed on; leave it out
= exit 125
$ nono run --env NODE_OPTIONS=x -- true
! [nono] error: the environment variable NODE_OPTIONS can inject code and is never passed on; leave it out
= exit 125
$ nono run --env GIT_SSH_COMMAND=x -- true
! [nono] error: the environment variable GIT_SSH_COMMAND can inject code and is never passed on; leave it out
= exit 125
$ nono run --env NONO_CAP_FILE=x -- true
! [nono] error: the environment variable NONO_CAP_FILE is reserved for nono
= exit 125
$ nono run --env =x -- true
! [nono] error: invalid environment variable "": the name must not be empty or contain "=" or "*", and nothing may contain NUL
= exit 125
$ nono run --env '' -- true
! [nono] error: invalid environment variable "": the name must not be empty or contain "=" or "*", and nothing may contain NUL
= exit 125
$ nono run --env 'A B=x' -- true

"#]],
    );
}

#[test]
fn bytes_that_are_no_text_pass() {
    let world = World::new();
    let mut command =
        world.nono(&["run", "--env", "ODD", "--", "sh", "-c", "printf %s \"$ODD\"; printf %s \"$1\"", "x"]);
    let outcome =
        finish(command.env("ODD", OsStr::from_bytes(b"a\xffb")).arg(OsStr::from_bytes(b"\xfe\x01")));
    assert_eq!(
        (outcome.code(), outcome.stdout.as_slice()),
        (Some(0), b"a\xffb\xfe\x01".as_slice()),
        "{outcome:?}"
    );
    let mut command = world.nono(&["run", "--env-all", "--", "env"]);
    let outcome = finish(command.env(OsStr::from_bytes(b"N\xff"), "v"));
    assert!(outcome.stdout.windows(4).any(|bytes| bytes == b"N\xff=v"), "{outcome:?}");
}

#[test]
fn a_profile_has_its_say() {
    let world = caller().with("MY_A", Some("1")).with("MY_B", Some("2")).with("MY_TOKEN", Some("3"));
    world.profile(
        "mine",
        r#"{"environment": {"allow_vars": ["MY_*"], "deny_vars": ["MY_B", "TERM"], "set_vars": {"SET": "yes"}}}"#,
    );
    world.profile("bad", r#"{"environment": {"set_vars": {"LD_PRELOAD": "x"}}}"#);
    world.golden(
        &["nono run -p mine -- env | grep -E '^(MY|TERM|SET)'", "nono run -p bad -- true"],
        str![[r#"
$ nono run -p mine -- env | grep -E '^(MY|TERM|SET)'
MY_A=1
SET=yes
$ nono run -p bad -- true
! [nono] error: the environment variable LD_PRELOAD can inject code and is never passed on; leave it out
= exit 125

"#]],
    );
}
