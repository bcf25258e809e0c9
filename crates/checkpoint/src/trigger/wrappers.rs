//! Programs that run another one: what they run is what counts.

use super::args::{Values, is_option, takes_next};
use super::words::{Arg, Known};

pub(super) struct Wrapper {
    names: &'static [&'static str],
    /// Options that take a value.
    values: Values,
    /// Operands of its own before the command.
    operands: usize,
    /// With one of these it runs nothing.
    not: &'static [&'static str],
    /// The command comes after one of these words.
    after: &'static [&'static str],
    /// The rest is one line for a shell.
    pub(super) line: bool,
    /// More arguments come from somewhere else.
    pub(super) fed: bool,
}

const PLAIN: Wrapper =
    Wrapper { names: &[], values: &[], operands: 0, not: &[], after: &[], line: false, fed: false };

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["sudo", "doas", "run0", "pkexec", "please"],
        values: &[
            "-u", "-g", "-p", "-h", "-D", "-R", "-T", "-C", "-r", "-t", "--user", "--group", "--chdir",
            "--prompt",
        ],
        not: &["-l", "-v", "-k", "-K", "-V"],
        ..PLAIN
    },
    Wrapper { names: &["env", "genv"], values: &["-u", "--unset", "-C", "--chdir"], ..PLAIN },
    Wrapper {
        names: &[
            "nohup",
            "setsid",
            "builtin",
            "busybox",
            "toybox",
            "caffeinate",
            "unbuffer",
            "proxychains",
            "fakeroot",
            "winpty",
            "systemd-inhibit",
            "dbus-run-session",
            "catchsegv",
            "noglob",
            "nocorrect",
            "coproc",
        ],
        ..PLAIN
    },
    Wrapper { names: &["command"], not: &["-v", "-V"], ..PLAIN },
    Wrapper { names: &["exec"], values: &["-a"], ..PLAIN },
    Wrapper { names: &["time", "gtime"], values: &["-f", "--format", "-o", "--output"], ..PLAIN },
    Wrapper {
        names: &["timeout", "gtimeout"],
        values: &["-s", "--signal", "-k", "--kill-after"],
        operands: 1,
        ..PLAIN
    },
    Wrapper { names: &["nice", "gnice"], values: &["-n", "--adjustment"], ..PLAIN },
    Wrapper { names: &["ionice"], values: &["-c", "-n", "--class", "--classdata"], not: &["-p"], ..PLAIN },
    Wrapper { names: &["chrt", "taskset", "numactl"], values: &["-c", "--cpu-list"], operands: 1, ..PLAIN },
    Wrapper { names: &["stdbuf", "gstdbuf"], values: &["-i", "-o", "-e"], ..PLAIN },
    Wrapper {
        names: &["strace", "ltrace", "perf", "valgrind", "gdb"],
        values: &["-e", "-o", "-p", "-s", "-u", "-P"],
        ..PLAIN
    },
    Wrapper { names: &["watch"], values: &["-n", "--interval"], line: true, ..PLAIN },
    Wrapper { names: &["eval"], line: true, ..PLAIN },
    Wrapper {
        names: &["xargs", "gxargs"],
        values: &[
            "-I",
            "-i",
            "-n",
            "-L",
            "-P",
            "-s",
            "-d",
            "-a",
            "-E",
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--delimiter",
            "--arg-file",
            "--replace",
        ],
        fed: true,
        ..PLAIN
    },
    Wrapper {
        names: &["parallel"],
        values: &["-j", "--jobs", "-a", "--arg-file", "-I", "-N", "-n"],
        line: true,
        fed: true,
        ..PLAIN
    },
    Wrapper {
        names: &["npx", "bunx", "pnpx", "uvx", "pipx"],
        values: &["-p", "--package", "--from", "--with"],
        ..PLAIN
    },
    Wrapper {
        names: &["npm", "pnpm", "yarn", "bun"],
        values: &["--package", "-C", "--dir", "--prefix", "--filter"],
        after: &["exec", "dlx", "x"],
        ..PLAIN
    },
    Wrapper {
        names: &["uv", "poetry", "pdm", "pipenv", "hatch", "rye", "pixi", "pipx", "rustup"],
        values: &["--with", "--python", "-p", "--extra", "--group", "--package"],
        after: &["run"],
        ..PLAIN
    },
    Wrapper {
        names: &["bundle", "rbenv", "pyenv", "asdf", "mise", "direnv", "devbox", "conda", "micromamba"],
        values: &["-n", "--name", "-p"],
        after: &["exec", "run"],
        ..PLAIN
    },
];

/// What a wrapper runs.
pub(super) struct Inner<'a> {
    pub(super) wrapper: &'static Wrapper,
    pub(super) args: &'a [Arg],
    /// Where, if it says so.
    pub(super) dir: Option<Arg>,
}

/// The command within, if this is one of them and runs something.
pub(super) fn unwrap<'a>(name: &str, args: &'a [Arg]) -> Option<Inner<'a>> {
    WRAPPERS.iter().filter(|wrapper| wrapper.names.contains(&name)).find_map(|wrapper| inside(wrapper, args))
}

fn inside<'a>(wrapper: &'static Wrapper, args: &'a [Arg]) -> Option<Inner<'a>> {
    let mut dir = None;
    let mut operands = wrapper.operands;
    let mut waiting = !wrapper.after.is_empty();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if is_option(arg) {
            if wrapper.not.contains(&arg.text.as_str()) {
                return None;
            }
            if arg.is("--") {
                // Whatever it is, an operand or the command comes next.
            } else if takes_next(&arg.text, wrapper.values) {
                at += 1;
                if ["-C", "-D", "--chdir", "--dir", "--prefix"].contains(&arg.text.as_str()) {
                    dir = args.get(at).cloned();
                }
            } else if let Some(text) = arg.text.strip_prefix("--chdir=") {
                dir = Some(Arg { text: text.to_owned(), ..arg.clone() });
            }
        } else if waiting {
            if !wrapper.after.contains(&arg.text.as_str()) {
                return None;
            }
            waiting = false;
        } else if operands > 0 {
            operands -= 1;
        } else if !assignment(arg) {
            return Some(Inner { wrapper, args: &args[at..], dir });
        }
        at += 1;
    }
    None
}

/// `NAME=value` before the command.
fn assignment(arg: &Arg) -> bool {
    arg.text
        .split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// The words as one line. What is not known of them stays unknown: a variable that nobody set.
pub(super) fn as_line(args: &[Arg]) -> String {
    let words = args.iter().map(|arg| match arg.known {
        Known::Whole => arg.text.clone(),
        Known::Pattern => format!("{}*{}", arg.text, arg.end),
        Known::Beginning => format!("{}$UNKNOWN{}", arg.text, arg.end),
    });
    words.collect::<Vec<_>>().join(" ")
}
