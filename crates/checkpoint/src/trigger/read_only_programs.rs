//! Programs that change no file: before a line of nothing else no checkpoint is needed. The list is short on purpose; a
//! program that is missing costs one look at the project in a turn.

use super::line::Simple;

/// Programs without an option that writes a file or runs a program.
const PLAIN: &str = "
    : true false echo printf test [ set exit wait sleep kill type pwd cd pushd popd dirs
    cat tac head tail nl wc cut paste join comm cmp diff tr rev fold column seq expr od hexdump base64 strings
    grep egrep fgrep zgrep zcat jq md5sum sha1sum sha256sum sha512sum cksum
    ls dir exa eza stat du df realpath readlink basename dirname which whereis
    nm readelf objdump size tokei cloc
    uname nproc uptime free id whoami groups printenv locale tty ps pgrep pidof lsof ss netstat
";

/// Programs that read unless an option begins with one of these. Of options of one letter any in a group counts.
const UNLESS: &[(&str, &[&str])] = &[
    ("rg", &["--pre", "--hostname-bin"]),
    ("find", &["-delete", "-exec", "-ok", "-fprint", "-fls"]),
    ("fd", &["-x", "-X", "--exec"]),
    ("fdfind", &["-x", "-X", "--exec"]),
    ("sort", &["-o", "--o", "--com"]),
    ("tree", &["-o", "--output"]),
    ("file", &["-C", "--c"]),
    ("date", &["-s", "--s"]),
];

/// Subcommands of `git` that change no file of the project.
const GIT: &str = "
    status log diff show grep blame shortlog describe version whatchanged range-diff
    rev-parse rev-list ls-files ls-tree cat-file for-each-ref show-ref name-rev merge-base
    diff-tree diff-index diff-files count-objects check-ignore check-attr
";

/// Subcommands of `git` that only read with one of these as their only word, or their first.
const GIT_FORMS: &[(&str, &[&str], &[&str])] = &[
    ("stash", &[], &["list", "show"]),
    ("branch", &["", "-a", "-r", "-v", "-vv", "-av", "--all", "--show-current", "--list"], &[]),
    ("tag", &["", "-l", "--list"], &["-l", "--list"]),
    ("remote", &["", "-v"], &["show", "get-url"]),
    ("worktree", &[], &["list"]),
    ("submodule", &["", "status"], &["status"]),
    ("reflog", &[""], &["show"]),
    ("config", &["-l", "--list", "list"], &["--get", "--get-all", "--get-regexp", "get"]),
];

/// Subcommands of `nono` that change nothing, or ask the user first.
const NONO: &str = "request why status diff ps log turns inspect";
const NONO_FORMS: &[(&str, &str)] =
    &[("checkpoints", "list diff status"), ("rollback", "list show"), ("audit", "list show verify")];

/// Whether a word is one of a table.
fn is_in(table: &str, word: &str) -> bool {
    table.split_whitespace().any(|known| known == word)
}

/// Whether a command is known to change no file.
pub(super) fn only_reads(command: &Simple) -> bool {
    let Some((program, args)) = command.words.split_first() else { return false };
    if program.unknown
        || args.iter().any(|arg| arg.unknown)
        || !command.writes.iter().all(|word| is_device(&word.text))
    {
        return false;
    }
    let args: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|dir| program.text.strip_prefix(dir));
    let name = name.unwrap_or(&program.text);
    !name.contains('/') && reads(name, &args)
}

fn reads(name: &str, args: &[&str]) -> bool {
    if is_in(PLAIN, name) || matches!(args, ["--version" | "--help"]) {
        return true;
    }
    if let Some((_, writing)) = UNLESS.iter().find(|(known, _)| *known == name) {
        return !args.iter().any(|arg| writing.iter().any(|option| is_option(arg, option)));
    }
    let operands = || args.iter().filter(|arg| !arg.starts_with('-'));
    match name {
        "git" => git(args),
        "sed" => sed(args),
        // A second one is written.
        "uniq" | "xxd" => operands().count() < 2,
        "env" => args.is_empty(),
        "command" => matches!(args, ["-v" | "-V", _]),
        "nono" => match args {
            [first, ..] if is_in(NONO, first) => true,
            [first, second, ..] => {
                NONO_FORMS.iter().any(|(section, known)| section == first && is_in(known, second))
            }
            _ => false,
        },
        _ => false,
    }
}

fn is_option(arg: &str, option: &str) -> bool {
    match option.strip_prefix('-').filter(|letter| letter.len() == 1) {
        Some(letter) => arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letter),
        // `--pretty` of `rg` is not `--pre`.
        None if option == "--pre" => arg == option || arg.starts_with("--pre="),
        None => arg.starts_with(option),
    }
}

fn git(args: &[&str]) -> bool {
    let mut args = args;
    loop {
        args = match args {
            ["--no-pager" | "-P" | "--no-optional-locks", rest @ ..] | ["-C", _, rest @ ..] => rest,
            ["-c", setting, rest @ ..] if setting.starts_with("color.") => rest,
            _ => break,
        }
    }
    let Some((command, rest)) = args.split_first() else { return false };
    // These write a file or run a program.
    let acts = |arg: &&str| {
        ["--output", "--ext-diff", "-O", "--open-files"].iter().any(|option| arg.starts_with(option))
    };
    if rest.iter().any(acts) {
        return false;
    }
    let only = |forms: &[&str]| rest.len() < 2 && forms.contains(&rest.first().copied().unwrap_or_default());
    let first = |forms: &[&str]| rest.first().is_some_and(|word| forms.contains(word));
    is_in(GIT, command)
        || GIT_FORMS.iter().any(|(name, whole, firsts)| name == command && (only(whole) || first(firsts)))
}

/// Addresses with `p`, `d`, `q`, `=`, or one substitution whose flags neither write nor run anything.
fn sed(args: &[&str]) -> bool {
    let (options, operands): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with('-'));
    let Some(script) = operands.first().map(|script| script.trim()) else { return false };
    let plain = |script: &str| script.chars().all(|c| c.is_ascii_digit() || " ,$;pdq=!".contains(c));
    let substitutes = |script: &str| {
        let Some(rest) = script.strip_prefix('s') else { return false };
        let Some(end) = rest.chars().next().filter(char::is_ascii_punctuation) else { return false };
        let parts: Vec<&str> = rest[1..].split(end).collect();
        let flags = |flags: &str| flags.chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c));
        matches!(parts.as_slice(), [_, _, last] if end != '\\' && flags(last))
    };
    options.iter().all(|option| ["-n", "-E", "-r"].contains(option)) && (plain(script) || substitutes(script))
}

/// Whether what is written to it is lost, or is an open file.
pub(super) fn is_device(path: &str) -> bool {
    const FOLDERS: [&str; 3] = ["/dev/fd/", "/dev/pts/", "/proc/self/fd/"];
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/dev/stderr", "/dev/tty"].contains(&path)
        || FOLDERS.iter().any(|folder| path.starts_with(folder) && !path.contains(".."))
}
