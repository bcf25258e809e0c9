//! Shells and other programs that are given their script on the command line or by standard input.

use super::args::Args;
use super::state::State;
use super::table::HELP;
use super::walk::{Input, Walk, Walker};
use super::words::{Arg, Known};
use super::wrappers::as_line;

const SHELLS: &[&str] =
    &["bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "su", "runuser", "script"];

/// Name, and the options whose value is a script.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("nodejs", &["-e", "--eval", "-p", "--print"]),
    ("bun", &["-e", "--eval"]),
    ("deno", &["eval"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("Rscript", &["-e"]),
    ("julia", &["-e"]),
    ("tclsh", &["-c"]),
    ("osascript", &["-e"]),
    ("pwsh", &["-c", "-Command", "-command"]),
];

/// `python3.12` is `python`.
pub(super) fn plain_name(name: &str) -> &str {
    if name.starts_with("python") || name.starts_with("pypy") {
        return name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    }
    name
}

impl Walker {
    /// Judge a script that a shell is given; nothing if the program is no shell.
    pub(super) fn shell(&mut self, name: &str, args: &[Arg], state: &State, input: &Input) -> Walk<bool> {
        if !SHELLS.contains(&name) {
            return Ok(false);
        }
        let values: &'static [&'static str] = &["-o", "+o", "-O", "--rcfile", "--init-file", "-s", "-g"];
        // `-c` may stand in a cluster (`-lc`) and takes the first operand, wherever that is.
        let mut commands = args.iter().filter(|arg| !arg.text.starts_with("--"));
        let has_command = commands.clone().any(|arg| arg.text.starts_with('-') && arg.text.contains('c'))
            || commands.any(|arg| arg.is("--command"));
        let values = if name == "bash" || name == "sh" { &values[..5] } else { values };
        let told = Args::new(args, values);
        if has_command || told.has(&["--command"], &[]) {
            let script = match name {
                "su" | "runuser" | "script" => after_command(args),
                _ => told.operands.first().map(|arg| (*arg).clone()),
            };
            return match script {
                Some(script) => self.text(&script, state).map(|()| true),
                None => Ok(true),
            };
        }
        let reads = told.operands.first().is_none_or(|first| first.is("-") || first.is("/dev/stdin"));
        if reads || told.has(&["-s"], &[]) {
            self.fed(input, state)?;
        } else if !told.has(HELP, &[]) {
            // A script in a file: nobody knows what it does.
            self.here(state);
        }
        Ok(true)
    }

    /// A script by standard input.
    fn fed(&mut self, input: &Input, state: &State) -> Walk {
        match input {
            Input::Inherited => {}
            // Nobody knows what it says.
            Input::Pipe => self.here(state),
            Input::Text(text) => self.text(text, state)?,
        }
        Ok(())
    }

    /// A script for a shell, if all of it is known; else where it runs is at risk.
    fn text(&mut self, script: &Arg, state: &State) -> Walk {
        if script.known == Known::Whole {
            return self.script(&script.text, &mut state.clone());
        }
        self.here(state);
        // What is known may name a place elsewhere; that it may not make a whole line does not matter.
        let _ = self.script(&as_line(std::slice::from_ref(script)), &mut state.clone());
        Ok(())
    }

    /// A script of one line, or one by standard input, in another language; `false` if the program is none.
    pub(super) fn language(&mut self, name: &str, args: &[Arg], state: &State, input: &Input) -> Walk<bool> {
        let Some((_, options)) = LANGUAGES.iter().find(|(language, _)| *language == name) else {
            return Ok(false);
        };
        if name == "python" || name == "pypy" {
            let module = args.iter().position(|arg| arg.text.starts_with("-m"));
            let operand = args.iter().position(|arg| !arg.text.starts_with('-')).unwrap_or(args.len());
            if let Some(at) = module.filter(|at| *at <= operand) {
                let attached = args[at].text.trim_start_matches("-m");
                let inner = if attached.is_empty() {
                    args[at + 1..].to_vec()
                } else {
                    [&[Arg::exact(attached)], &args[at + 1..]].concat()
                };
                return self.program(&inner, state, input).map(|()| true);
            }
        }
        let mut scripts = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            if let Some(option) = options.iter().find(|option| gives_script(&arg.text, option)) {
                scripts.extend(args.get(at + 1));
                if arg.text.len() > option.len() {
                    scripts.push(arg);
                }
            }
        }
        if matches!(args, [only] if HELP.contains(&only.text.as_str()) || ["-V", "-v"].contains(&only.text.as_str()))
        {
            return Ok(true);
        }
        if let (Input::Text(text), true) = (input, scripts.is_empty()) {
            scripts.push(text);
        }
        self.here(state);
        for script in scripts {
            self.literals(&script.text, state);
        }
        Ok(true)
    }

    /// Absolute paths in quotes.
    fn literals(&mut self, script: &str, state: &State) {
        for part in script.split(['"', '\'', '`']).skip(1).step_by(2) {
            if part.starts_with('/') && part.len() > 1 && !part.contains(char::is_whitespace) {
                self.target(&Arg::exact(part), state);
            }
        }
    }
}

/// `-c`, `-lc`, `-ne`; a long one as it is.
fn gives_script(arg: &str, option: &str) -> bool {
    match option.strip_prefix('-').filter(|rest| rest.chars().count() == 1) {
        Some(letter) => {
            arg.starts_with('-')
                && !arg.starts_with("--")
                && arg
                    .get(1..)
                    .is_some_and(|letters| letters.ends_with(letter) || letters.starts_with(letter))
        }
        None => arg == option,
    }
}

/// The word after `-c` or `--command`.
fn after_command(args: &[Arg]) -> Option<Arg> {
    let at = args.iter().position(|arg| {
        arg.is("--command")
            || (arg.text.starts_with('-') && !arg.text.starts_with("--") && arg.text.ends_with('c'))
    })?;
    args.get(at + 1).cloned()
}
