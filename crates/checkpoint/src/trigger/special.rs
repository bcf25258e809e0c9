//! Programs whose arguments are a language of their own.

use super::args::{Args, Values, is_option};
use super::commands::change;
use super::patch;
use super::state::State;
use super::table::{GIT, GIT_DRY, GIT_FORMS, GIT_LISTING, GIT_SETTINGS};
use super::walk::{Input, Walk, Walker};
use super::words::{Arg, Known};

impl Walker {
    /// `false`: not one of them, or not in a form that is judged here.
    pub(super) fn special(&mut self, name: &str, args: &[Arg], state: &State, input: &Input) -> Walk<bool> {
        match name {
            "git" => self.git(args, state),
            "find" | "gfind" | "fd" | "fdfind" => self.find(name, args, state)?,
            "tar" | "gtar" | "bsdtar" => self.tar(args, state),
            "unzip" => self.unzip(args, state),
            "dd" | "gdd" => {
                for (arg, text) in args.iter().filter_map(|arg| Some((arg, arg.text.strip_prefix("of=")?))) {
                    self.target(&Arg { text: text.to_owned(), ..arg.clone() }, state);
                }
            }
            "sed" | "gsed" => self.sed(args, state),
            "apply_patch" | "applypatch" => self.apply_patch(args, state, input),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(args, state),
            "ruff" => self.ruff(args, state),
            "sqlite3" => self.sqlite(args, state),
            "curl" => return Ok(self.curl(args, state)),
            "wget" => self.wget(args, state),
            "rsync" => return Ok(self.rsync(args, state)),
            "flock" => self.flock(args, state, input)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn git(&mut self, args: &[Arg], state: &State) {
        let mut state = state.clone();
        let mut trees: Vec<Arg> = Vec::new();
        let mut at = 0;
        while let Some(arg) = args.get(at).filter(|arg| is_option(arg)) {
            match arg.text.as_str() {
                "-C" => {
                    at += 1;
                    change(args.get(at..=at).unwrap_or_default(), &mut state);
                }
                "--work-tree" => {
                    at += 1;
                    trees.extend(args.get(at).cloned());
                }
                "-c" => {
                    at += 1;
                    // An alias, a pager, a way to connect may run anything.
                    let harmless = |arg: &Arg| GIT_SETTINGS.iter().any(|start| arg.text.starts_with(start));
                    if !args.get(at).is_some_and(harmless) {
                        self.here(&state);
                    }
                }
                "--git-dir" | "--namespace" | "--super-prefix" => at += 1,
                text if text.starts_with("--config-env") || text.starts_with("--exec-path=") => {
                    self.here(&state);
                }
                text => trees.extend(
                    text.strip_prefix("--work-tree=")
                        .map(|tree| Arg { text: tree.to_owned(), ..arg.clone() }),
                ),
            }
            at += 1;
        }
        let Some(command) = args.get(at) else { return };
        if !git_reads(command, &args[at + 1..]) {
            self.here(&state);
            self.aim(&trees, &state);
        }
        for arg in &args[at + 1..] {
            if let Some(text) = arg.text.strip_prefix("--output=") {
                self.target(&Arg { text: text.to_owned(), ..arg.clone() }, &state);
            }
        }
    }

    fn find(&mut self, name: &str, args: &[Arg], state: &State) -> Walk {
        let expression = |arg: &Arg| arg.text.starts_with('-') || arg.text == "(" || arg.text == "!";
        let starts: Vec<Arg> = match name {
            // `fd pattern path -x command`
            "fd" | "fdfind" => args.iter().take_while(|arg| !expression(arg)).skip(1).cloned().collect(),
            _ => {
                let global = |arg: &&Arg| ["-L", "-H", "-P"].contains(&arg.text.as_str());
                args.iter().skip_while(global).take_while(|arg| !expression(arg)).cloned().collect()
            }
        };
        let starts = if starts.is_empty() { vec![Arg::exact(".")] } else { starts };
        let mut lost = false;
        for (at, arg) in args.iter().enumerate() {
            let rest = &args[at + 1..];
            match arg.text.as_str() {
                "-delete" => lost = true,
                "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                    self.aim(rest.first(), state);
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch" => {
                    let end = rest.iter().position(|arg| arg.is(";") || arg.is("+")).unwrap_or(rest.len());
                    let mut command = rest[..end].to_vec();
                    for word in &mut command {
                        if word.text.contains("{}") {
                            word.text = word.text.replace("{}", &starts[0].text);
                        }
                    }
                    lost |= self.found(|walker| walker.program(&command, state, &Input::Inherited))?;
                }
                _ => {}
            }
        }
        if lost {
            self.aim(&starts, state);
        }
        Ok(())
    }

    fn tar(&mut self, args: &[Arg], state: &State) {
        const VALUES: Values =
            &["-f", "--file", "-C", "--directory", "-T", "-X", "--exclude", "-I", "-b", "-g", "-V"];
        // The first word may do without its dash: `tar xzf a.tgz`.
        let mut args = args.to_vec();
        if let Some(first) = args.first_mut().filter(|first| !first.text.starts_with('-')) {
            first.text.insert(0, '-');
        }
        let told = Args::new(&args, VALUES);
        let folders = told.values(&["-C", "--directory"], VALUES);
        if told.has(&["-x", "--extract", "--get"], VALUES) && !told.has(&["-O", "--to-stdout"], VALUES) {
            if folders.is_empty() {
                self.here(state);
            }
            self.aim(folders, state);
            if told.has(&["-P", "--absolute-names"], VALUES) {
                self.here(state);
            }
        }
        let writes =
            ["-c", "--create", "-r", "--append", "-u", "--update", "-A", "--concatenate", "--delete"];
        if told.has(&writes, VALUES) {
            self.aim(told.values(&["-f", "--file"], VALUES), state);
        }
        if told.has(&["--remove-files"], VALUES) {
            self.here(state);
        }
    }

    fn unzip(&mut self, args: &[Arg], state: &State) {
        const VALUES: Values = &["-d", "-x", "-P"];
        let told = Args::new(args, VALUES);
        if told.has(&["-l", "-t", "-v", "-p", "-Z", "-z", "-c"], VALUES) || told.operands.is_empty() {
            return;
        }
        let folders = told.values(&["-d"], VALUES);
        if folders.is_empty() {
            self.here(state);
        }
        self.aim(folders, state);
    }

    /// The files that a patch names, wherever they are; and what stands beside them.
    fn apply_patch(&mut self, args: &[Arg], state: &State, input: &Input) {
        let fed = if let Input::Text(text) = input { Some(text) } else { None };
        for text in args.iter().chain(fed) {
            for path in patch::paths(&text.text) {
                self.target(&Arg::exact(path.as_str()), state);
            }
        }
        self.here(state);
    }

    /// In place its operands; else nothing, if its script is one of those that only print.
    fn sed(&mut self, args: &[Arg], state: &State) {
        const VALUES: Values = &["-e", "--expression", "-f", "--file", "-l", "--line-length"];
        let told = Args::new(args, VALUES);
        if told.has(&["-i", "--in-place"], VALUES) {
            if told.operands.is_empty() {
                self.here(state);
            }
            return self.aim(told.operands.iter().copied(), state);
        }
        let given = told.values(&["-e", "--expression"], VALUES);
        let scripts =
            if given.is_empty() { told.operands.first().copied().into_iter().collect() } else { given };
        let prints = |arg: &&Arg| arg.known == Known::Whole && sed_prints(&arg.text);
        if told.has(&["-f", "--file"], VALUES) || !scripts.iter().all(prints) {
            self.here(state);
        }
    }

    fn awk(&mut self, args: &[Arg], state: &State) {
        const VALUES: Values =
            &["-i", "--include", "-v", "-f", "-F", "--file", "--assign", "-e", "--source", "-E", "-l"];
        let told = Args::new(args, VALUES);
        let in_place = told.values(&["-i", "--include"], VALUES).iter().any(|value| value.is("inplace"));
        if in_place {
            self.aim(told.operands.iter().skip(1).copied(), state);
            if told.operands.len() < 2 {
                self.here(state);
            }
            return;
        }
        let elsewhere = ["-f", "--file", "-E", "-i", "--include", "-l", "-e", "--source"];
        let reads = |arg: &&Arg| arg.known == Known::Whole && awk_reads(&arg.text);
        if told.has(&elsewhere, VALUES) || !told.operands.first().is_none_or(reads) {
            self.here(state);
        }
    }

    fn ruff(&mut self, args: &[Arg], state: &State) {
        let told = Args::new(args, &["--config", "--select", "--ignore", "--line-length"]);
        let formats = told.operands.first().is_some_and(|arg| arg.is("format"));
        let checks = told.has(&["--check", "--diff", "--help"], &[]);
        if (formats && !checks) || told.has(&["--fix", "--fix-only", "--add-noqa"], &[]) {
            if told.operands.len() < 2 {
                self.here(state);
            }
            self.aim(told.operands.iter().skip(1).copied(), state);
        }
    }

    /// What it is told may also be `.shell` or `writefile`.
    fn sqlite(&mut self, args: &[Arg], state: &State) {
        let told = Args::new(args, &["-cmd", "-separator", "-init"]);
        self.aim(told.operands.first().copied(), state);
        self.here(state);
    }

    /// `-O` writes where it runs; `-o FILE` is in the table.
    fn curl(&mut self, args: &[Arg], state: &State) -> bool {
        const VALUES: Values =
            &["-o", "-H", "-d", "-X", "-u", "-A", "-b", "-c", "-e", "-F", "-m", "-T", "-w", "-x", "-K", "-E"];
        let told = Args::new(args, VALUES);
        if told.has(&["-O", "--remote-name", "--remote-name-all"], VALUES) {
            self.here(state);
        }
        false
    }

    /// Without `-O FILE` it writes where it runs, or in the folder of `-P`.
    fn wget(&mut self, args: &[Arg], state: &State) {
        const VALUES: Values =
            &["-O", "--output-document", "-o", "--output-file", "-P", "--directory-prefix", "-U", "-t", "-T"];
        let told = Args::new(args, VALUES);
        let files = told.values(&["-O", "--output-document", "-o", "--output-file"], VALUES);
        let folders = told.values(&["-P", "--directory-prefix"], VALUES);
        if files.is_empty() && folders.is_empty() && !told.has(&["--spider"], VALUES) {
            self.here(state);
        }
        self.aim(files.into_iter().chain(folders), state);
    }

    /// `--remove-source-files` and a plain destination; the table has the rest.
    fn rsync(&mut self, args: &[Arg], state: &State) -> bool {
        let told = Args::new(args, &["-e", "-f", "-B", "-M", "-T"]);
        let dry = told.has(&["-n", "--dry-run", "--list-only"], &["-e", "-f", "-B", "-M", "-T"]);
        if !dry && told.has(&["--remove-source-files"], &[]) {
            self.here(state);
        }
        dry
    }

    /// `flock FILE command…`, `flock FILE -c line`
    fn flock(&mut self, args: &[Arg], state: &State, input: &Input) -> Walk {
        let told = Args::new(args, &["-w", "--timeout", "-E", "-c", "--command"]);
        if let Some(line) = told.values(&["-c", "--command"], &["-c"]).first() {
            return self.script(&line.text, &mut state.clone());
        }
        let at = args.iter().position(|arg| !is_option(arg)).map_or(args.len(), |at| at + 1);
        self.program(&args[at.min(args.len())..], state, input)
    }
}

/// Whether a command of git changes nothing.
fn git_reads(command: &Arg, rest: &[Arg]) -> bool {
    let name = command.text.as_str();
    let told = Args::new(rest, &[]);
    let first = told.operands.first().map_or("", |arg| arg.text.as_str());
    let form = |table: &[(&str, &'static [&'static str])]| {
        table.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, forms)| *forms)
    };
    // Without an operand `branch -D` still does nothing, and `branch --edit-description` does.
    let plain = told.options.iter().all(|(option, _)| GIT_LISTING.contains(option));
    let runs = name == "grep" && told.options.iter().any(|(option, _)| option.starts_with("-O"));
    let shows = name == "apply" && told.has(&["--check", "--stat", "--numstat", "--summary"], &[]);
    (GIT.contains(&name) && !runs)
        || (shows && !told.has(&["--apply"], &[]))
        || told.has(form(GIT_DRY), &[])
        || (form(GIT_FORMS).contains(&first) && (!first.is_empty() || plain))
}

/// A script of addresses and `p`, `d`, `q`, `=`, or one substitution whose flags neither write nor run anything.
fn sed_prints(script: &str) -> bool {
    let script = script.trim();
    if script.chars().all(|c| c.is_ascii_digit() || " ,$;pdq=!".contains(c)) {
        return true;
    }
    let Some(rest) = script.strip_prefix('s') else { return false };
    let Some(delimiter) = rest.chars().next().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()) else {
        return false;
    };
    let mut escaped = false;
    let is_end = |c: char| {
        let ends = c == delimiter && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    };
    let parts: Vec<&str> = rest[delimiter.len_utf8()..].split(is_end).collect();
    matches!(parts.as_slice(), [_, _, flags] if flags.chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c)))
}

/// An awk program that writes to nothing but devices, and runs nothing.
fn awk_reads(program: &str) -> bool {
    let squeezed: String = program.chars().filter(|c| !c.is_whitespace()).collect();
    let plain = squeezed.replace("||", "");
    let mut writes = plain.split('>').skip(1).filter(|rest| !rest.is_empty());
    let compares = !plain.contains("print") || writes.all(|rest| rest.starts_with("\"/dev/std"));
    compares && !["|", "system", "getline", "@"].iter().any(|word| plain.contains(word))
}
