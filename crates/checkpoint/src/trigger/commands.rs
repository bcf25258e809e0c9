//! One simple command: what the shell does itself, then what programs do.

use super::args::{Args, Values};
use super::forgets;
use super::interpreters::plain_name;
use super::state::{Left, State};
use super::table::{self, Program, Rule};
use super::walk::{Input, Walk, Walker, Ways};
use super::words::{Arg, Known};
use super::wrappers::{Inner, as_line, unwrap};

impl Walker {
    /// A command of the line: it may move the line elsewhere.
    pub(super) fn run(&mut self, args: &[Arg], mut state: State, input: &Input) -> Walk<Ways> {
        let Some((first, rest)) = args.split_first() else { return Ok((state.clone(), state)) };
        let name = if first.known == Known::Whole { first.text.as_str() } else { "" };
        let before = state.clone();
        if self.call(name, &mut state)? {
            return Ok((state.clone(), state));
        }
        match name {
            "cd" | "chdir" => change(rest, &mut state),
            "pushd" => {
                state.stack.push(state.dirs.clone());
                change(rest, &mut state);
            }
            "popd" => {
                if let Some(dirs) = state.stack.pop() {
                    state.go(dirs);
                }
            }
            "exit" | "logout" => state.left = Left::Shell,
            "return" | "break" | "continue" => state.left = Left::Block,
            "exec" => {
                self.program(args, &state, input)?;
                if !rest.is_empty() {
                    state.left = Left::Shell;
                }
            }
            "export" | "declare" | "local" | "typeset" | "readonly" => {
                for (name, value) in rest
                    .iter()
                    .filter_map(|arg| arg.text.split_once('=').map(|parts| (parts, arg)))
                    .map(|((name, value), arg)| (name, (arg.known == Known::Whole).then(|| value.to_owned())))
                {
                    state.set(name, value);
                }
            }
            "read" | "mapfile" | "readarray" | "unset" | "getopts" => {
                for arg in rest {
                    state.set(&arg.text, None);
                }
            }
            "eval" => {
                // Runs in this very shell.
                self.within(|walker| walker.script(&as_line(rest), &mut state))?;
            }
            "trap" => {
                if let Some(script) = rest.iter().find(|arg| !arg.text.starts_with('-')) {
                    self.script(&as_line(std::slice::from_ref(script)), &mut state.clone())?;
                }
            }
            _ => self.program(args, &state, input)?,
        }
        let bad = if matches!(name, "cd" | "chdir" | "pushd" | "popd") { before } else { state.clone() };
        Ok((state, bad))
    }

    /// A program, wherever it stands: it leaves the line where it is.
    pub(super) fn program(&mut self, args: &[Arg], state: &State, input: &Input) -> Walk {
        let Some((first, rest)) = args.split_first() else { return Ok(()) };
        let Some(name) = first.program() else {
            // Nobody knows what runs.
            self.here(state);
            self.aim(rest.iter().filter(|arg| arg.text.contains('/')), state);
            return Ok(());
        };
        let name = plain_name(name);
        self.forgets |= forgets::command(name, rest);
        let runs = |arg: &Arg| table::RUNNING.contains(&arg.text.split('=').next().unwrap_or_default());
        if rest.iter().any(runs) {
            self.here(state);
        }
        self.within(|walker| {
            if let Some(inner) = unwrap(name, rest) {
                return walker.wrapped(&inner, state, input);
            }
            if walker.shell(name, rest, state, input)? || walker.special(name, rest, state, input)? {
                return Ok(());
            }
            let language = walker.language(name, rest, state, input)?;
            let listed = table::find(name);
            if let Some(program) = listed {
                walker.listed(program, rest, state);
            }
            match listed {
                // One in a folder of its own (`./ls`) may be another program.
                Some(_) if is_installed(first) => {}
                _ if language => {}
                // A program of this name may be a function of the line.
                _ if walker.call(name, &mut state.clone())? => {}
                _ => walker.unknown(first, rest, state),
            }
            Ok(())
        })
    }

    /// A program that may do anything: where it runs is at risk, and the folders that it is sent to.
    fn unknown(&mut self, program: &Arg, args: &[Arg], state: &State) {
        const FOLDERS: Values = &["-C", "--directory", "--prefix", "--dir", "--cwd"];
        if matches!(args, [only] if table::HELP.contains(&only.text.as_str())) && is_installed(program) {
            return;
        }
        self.here(state);
        self.aim(Args::new(args, FOLDERS).values(FOLDERS, FOLDERS), state);
    }

    fn wrapped(&mut self, inner: &Inner<'_>, state: &State, input: &Input) -> Walk {
        let mut state = state.clone();
        if let Some(dir) = &inner.dir {
            change(std::slice::from_ref(dir), &mut state);
        }
        let found = self.found(|walker| {
            if inner.wrapper.line {
                return walker.script(&as_line(inner.args), &mut state.clone());
            }
            walker.program(inner.args, &state, input)?;
            if inner.wrapper.fed { walker.fed_program(inner.args, &state) } else { Ok(()) }
        })?;
        if found && inner.wrapper.fed {
            // What it works on is read from somewhere.
            self.here(&state);
        }
        Ok(())
    }

    /// A program whose operands come later: judged with one that nobody knows.
    fn fed_program(&mut self, args: &[Arg], state: &State) -> Walk {
        let unknown = Arg { known: Known::Beginning, ..Arg::default() };
        self.program(&[args, &[unknown]].concat(), state, &Input::Inherited)
    }

    fn listed(&mut self, program: &Program, args: &[Arg], state: &State) {
        let told = Args::new(args, program.values);
        if told.has(program.unless, program.values) {
            return;
        }
        match &program.rule {
            Rule::Operands(skip) => self.aim(told.operands.iter().skip(*skip).copied(), state),
            Rule::Last => self.destination(program, &told, state),
            Rule::With(options) if told.has(options, program.values) => self.operands(&told, state),
            Rule::Values(options) => self.aim(told.values(options, program.values), state),
            Rule::Always => self.operands(&told, state),
            Rule::Subcommand(words) if subcommand(&told, words) => self.elsewhere(&told, program, state),
            Rule::Reads(options) if told.has(options, program.values) => {
                self.elsewhere(&told, program, state);
            }
            Rule::ReadsWith(words) if !subcommand(&told, words) && !told.has(table::HELP, &[]) => {
                self.elsewhere(&told, program, state);
            }
            Rule::With(_) | Rule::Subcommand(_) | Rule::Reads(_) | Rule::ReadsWith(_) => {}
        }
    }

    fn operands(&mut self, told: &Args<'_>, state: &State) {
        if told.operands.is_empty() {
            self.here(state);
        }
        self.aim(told.operands.iter().copied(), state);
    }

    /// What is copied somewhere overwrites what is there. Another machine's files are not ours to keep.
    fn destination(&mut self, program: &Program, told: &Args<'_>, state: &State) {
        let folders = told.values(&["-t", "--target-directory"], program.values);
        let last = told.operands.last().filter(|_| folders.is_empty() && told.operands.len() > 1);
        for arg in folders.into_iter().chain(last.copied()) {
            let remote = arg.text.split('/').next().is_some_and(|start| start.contains(':'));
            if !remote {
                self.target(arg, state);
            }
        }
    }

    /// Where it runs, or the folder that an option names.
    fn elsewhere(&mut self, told: &Args<'_>, program: &Program, state: &State) {
        let options = ["-C", "--directory", "--prefix", "--dir", "--cwd"];
        let folders = told.values(&options, program.values);
        if folders.is_empty() {
            self.here(state);
        }
        self.aim(folders, state);
    }
}

/// Found by its name, or in a folder of the system's.
fn is_installed(program: &Arg) -> bool {
    const FOLDERS: [&str; 6] =
        ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    match program.text.rsplit_once('/') {
        Some((folder, _)) => program.known == Known::Whole && FOLDERS.contains(&folder),
        None => program.known == Known::Whole,
    }
}

/// One word, or two.
fn subcommand(told: &Args<'_>, words: &[&str]) -> bool {
    // `cargo +nightly fmt`
    let mut operands = told.operands.iter().filter(|arg| !arg.text.starts_with('+'));
    let first = operands.next().map_or("", |arg| arg.text.as_str());
    let second = operands.next().map_or("", |arg| arg.text.as_str());
    words.iter().any(|word| match word.split_once(' ') {
        Some((one, two)) => one == first && two == second,
        None => *word == first,
    })
}

/// `cd`: where to, as far as that is known.
pub(super) fn change(args: &[Arg], state: &mut State) {
    let target =
        args.iter().find(|arg| arg.text == "-" || !arg.text.starts_with('-') || arg.known != Known::Whole);
    match target {
        None => {
            if let Some(home) = state.value("HOME") {
                state.go(vec![home.into()]);
            }
        }
        Some(arg) if arg.is("-") => {
            if let Some(before) = state.before.clone() {
                state.go(before);
            }
        }
        // Unknown: what is known of it, and where the line was.
        Some(arg) => {
            let mut dirs = if arg.path().is_empty() { Vec::new() } else { state.paths(arg.path()) };
            if arg.known != Known::Whole {
                dirs.extend(state.dirs.clone());
            }
            state.go(dirs);
        }
    }
}
