//! One attack: its chain of steps, what it needs, and what counts as evidence that it worked.
//! It runs first without nono, where it must succeed (the positive control), then in every mode, where it must
//! not.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::binaries::controls_only;
use super::child::{Child, Outcome, Verdict};
use super::fixture::{Maker, Nothing};
use super::verdicts::{self, Cell, Row};
use super::world::{World, is_root};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    Wrap,
    Monitor,
    /// `run --ask`, where every request is denied.
    Ask,
    /// `run` on a machine without namespaces.
    Bare,
}

impl Mode {
    pub(crate) const ALL: &[Self] = &[Self::Run, Self::Wrap, Self::Monitor];
    /// All modes, in the order of the columns of `verdicts.txt`.
    pub(crate) const EVERY: [Self; 5] = [Self::Run, Self::Wrap, Self::Monitor, Self::Ask, Self::Bare];
    pub(crate) const WITH_PARENT: &[Self] = &[Self::Run, Self::Monitor];

    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Run | Self::Bare => &["run"],
            Self::Wrap => &["wrap"],
            Self::Monitor => &["run", "--monitor"],
            Self::Ask => &["run", "--ask", "--approve", "policy:{w}/no.json"],
        }
    }
}

/// Everything as it is, except that no process gets a namespace.
pub(crate) const BARE: &str = "/usr/bin/env bwrap --unshare-user --disable-userns --dev-bind / / --";

pub(crate) fn has_bwrap() -> bool {
    std::process::Command::new("bwrap").arg("--version").output().is_ok()
}

const GRANTS: &str = "--allow {prj} --read {ro} --read {bin}";

/// What the control must show, beyond printing `ESCAPED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Word,
    Leak,
    Change,
}

#[allow(clippy::struct_excessive_bools, reason = "one switch per circumstance, each set by its name")]
pub(crate) struct Attack {
    chain: &'static str,
    evidence: Evidence,
    modes: &'static [Mode],
    bases: &'static [&'static str],
    flags: &'static str,
    watch: &'static [&'static str],
    before: &'static str,
    env: &'static [(&'static str, &'static str)],
    wrapper: Option<&'static str>,
    descriptor: Option<&'static str>,
    begun: Option<(&'static str, &'static str)>,
    bare: bool,
    input: Option<&'static str>,
    cwd: &'static str,
    nono: &'static str,
    fixture: Maker,
    of_root: bool,
    needs_root: bool,
    may_refuse: bool,
    /// Under `run` it may write a copy: what counts is that nothing outside changed.
    has_copy: bool,
    lacks: &'static [&'static str],
    judged_in: &'static [Mode],
    label: &'static str,
}

/// Attack with `steps`, a chain as in `attack.h`, with names in braces.
pub(crate) fn attack(steps: &'static str) -> Attack {
    Attack {
        chain: steps,
        evidence: Evidence::Word,
        modes: Mode::ALL,
        bases: &["/var/tmp"],
        flags: "",
        watch: &["{out}", "{ro}"],
        before: "",
        env: &[],
        wrapper: None,
        descriptor: None,
        begun: None,
        bare: false,
        input: None,
        cwd: "{prj}",
        nono: "{bin}/nono",
        fixture: Box::new(|_| Box::new(Nothing)),
        of_root: false,
        needs_root: false,
        may_refuse: false,
        has_copy: false,
        lacks: &[],
        judged_in: &Mode::EVERY,
        label: "",
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty)?) $field:ident = $value:expr;)*) => {
        $($(#[$doc])* pub(crate) fn $name(mut self $(, $arg: $type)?) -> Self { self.$field = $value; self })*
    };
}

impl Attack {
    setters! {
        /// The control must print the secret.
        leaks() evidence = Evidence::Leak;
        /// The control must change the watched trees or the fixture.
        changes() evidence = Evidence::Change;
        /// `wrap` becomes the command: what needs a process above it does not apply there.
        modes(modes: &'static [Mode]) modes = modes;
        /// Sandboxes treat `/tmp` specially: try there too.
        also_in_tmp() bases = &["/var/tmp", "/tmp"];
        /// Adds to the usual grants.
        flags(flags: &'static str) flags = flags;
        watch(names: &'static [&'static str]) watch = names;
        /// A chain that runs outside, as the user, before the attack.
        before(chain: &'static str) before = chain;
        env(pairs: &'static [(&'static str, &'static str)]) env = pairs;
        /// Runs on a terminal of its own.
        on_tty() wrapper = Some("on-tty");
        /// Has a parent of the same user with a secret in its environment.
        launched() wrapper = Some("launch");
        /// In a mount namespace where the first of two folders is also visible at the second. Only root can do it.
        mounted(folders: &'static str) begun = Some(("mounted", folders));
        /// In a network namespace where the loopback has this address too, and a server on this port of all addresses.
        /// Only root can do it.
        addressed(address_and_port: &'static str) begun = Some(("addressed", address_and_port));
        /// On a machine without namespaces.
        bare() bare = true;
        /// Gives this path as open descriptor 7.
        descriptor(path: &'static str) descriptor = Some(path);
        /// Gives this path as stdin, opened for reading.
        input(path: &'static str) input = Some(path);
        cwd(path: &'static str) cwd = path;
        /// Another copy of the binary.
        nono_at(path: &'static str) nono = path;
        against(fixture: Maker) fixture = fixture;
        /// nono is started by root, and so is the control.
        by_root() of_root = true;
        /// Only root can prepare this one.
        prepared_by_root() needs_root = true;
        /// Refusing to start is as good as blocking.
        may_refuse() may_refuse = true;
        has_copy() has_copy = true;
        /// Errnos that mean, in the control, that this machine does not have the thing.
        lacks(errnos: &'static [&'static str]) lacks = errnos;
        /// Elsewhere the watched trees prove nothing.
        judged_in(modes: &'static [Mode]) judged_in = modes;
        /// Distinguishes it from another one with the same steps and flags.
        label(text: &'static str) label = text;
    }

    /// Command of a mode, or of the control when there is none.
    fn start(&self, world: &World, mode: Option<Mode>, chain: &str) -> Child {
        let program = world.program("attacks").to_str().expect("path is text").to_owned();
        let mut words: Vec<String> = Vec::new();
        if let Some(wrapper) = self.wrapper {
            words.extend([program.clone(), wrapper.to_owned()]);
        }
        if let Some(mode) = mode {
            words.push(world.expand(self.nono));
            words.extend(mode.words().iter().map(|word| world.expand(word)));
            words.extend(world.expand(GRANTS).split_whitespace().map(str::to_owned));
            words.extend(world.expand(self.flags).split_whitespace().map(str::to_owned));
            words.push("--".to_owned());
        }
        words.push(program);
        words.extend(chain.split_whitespace().map(str::to_owned));
        if let Some(path) = self.descriptor {
            let shell = ["/bin/sh", "-c", "exec \"$@\" 7<\"$0\""].map(str::to_owned);
            words.splice(0..0, shell.into_iter().chain([world.expand(path)]));
        }
        if self.bare || mode == Some(Mode::Bare) {
            words.splice(0..0, BARE.split(' ').map(str::to_owned));
        }
        let mut command = match self.begun {
            Some((step, arguments)) => world.begun_by_root(&format!("{step} {arguments}"), &words[0]),
            None => world.command(Path::new(&words[0])),
        };
        command.args(&words[1..]).current_dir(world.expand(self.cwd));
        command.envs(self.env.iter().map(|(name, value)| (name, world.expand(value))));
        let input = self.input.map(|path| File::open(world.expand(path)).expect("input"));
        Child::start(command, input)
    }

    /// Runs the preparing chain.
    pub(crate) fn prepare(&self, world: &World) {
        if !self.before.is_empty() {
            let mut command = world.command(&world.program("attacks"));
            command.args(world.expand(self.before).split_whitespace());
            let prepared = Child::start(command, None).finish();
            assert!(prepared.verdict() == Verdict::Worked, "cannot prepare: {prepared}");
        }
    }

    /// One run in a fresh world: its output, whether the secret is in it, whether anything outside changed.
    fn run(&self, base: &str, mode: Option<Mode>) -> Run {
        let world = World::new(base, self.of_root);
        self.prepare(&world);
        if mode == Some(Mode::Ask) {
            let rules = world.path("no.json");
            fs::write(&rules, r#"{"rules": [{"path": "/**", "action": "deny"}]}"#).expect("rules");
            world.own(&rules, 0o600);
        }
        let mut fixture = (self.fixture)(&world);
        let chain = fixture.expand(&world.expand(self.chain));
        let before = (world.state(self.watch), fixture.state());
        let outcome = self.start(&world, mode, &chain).finish();
        let after = (world.state(self.watch), fixture.state());
        Run { leaked: outcome.output.contains(&world.secret), changed: before != after, outcome }
    }

    /// `Some(why)` when this machine cannot try the attack.
    fn control(&self, base: &str) -> Result<Option<String>, String> {
        const ABSENT: &[&str] =
            &["ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP"];
        let run = self.run(base, None);
        let errno = run.outcome.errno();
        if run.outcome.verdict() == Verdict::Blocked
            && (ABSENT.contains(&errno) || self.lacks.contains(&errno))
        {
            return Ok(Some(format!("this machine answers {errno} even without nono")));
        }
        let happened = match self.evidence {
            Evidence::Word => run.outcome.verdict() == Verdict::Escaped,
            Evidence::Leak => run.outcome.verdict() == Verdict::Escaped && run.leaked,
            Evidence::Change => {
                [Verdict::Escaped, Verdict::Tried].contains(&run.outcome.verdict()) && run.changed
            }
        };
        if happened {
            Ok(None)
        } else {
            Err(format!("`{}`: control failed: proves nothing: {}", self.chain, run.outcome))
        }
    }

    /// Verdict in a mode, over all places of the world: the worst counts.
    fn judged(&self, mode: Mode) -> Result<(Cell, String), String> {
        let mut worst = (Cell::Absent, String::new());
        for base in self.bases {
            let run = self.run(base, Some(mode));
            let supervised = matches!(mode, Mode::Run | Mode::Ask | Mode::Bare);
            let cell = match run.outcome.verdict() {
                _ if run.leaked || run.changed => Cell::Open,
                Verdict::Blocked | Verdict::Tried => Cell::Held,
                Verdict::Refused => Cell::Refused,
                Verdict::Escaped if self.has_copy && supervised => Cell::Held,
                Verdict::Escaped => Cell::Open,
                Verdict::Worked | Verdict::Broken => {
                    return Err(format!("`{}`: {mode:?} in {base}: no verdict: {}", self.chain, run.outcome));
                }
            };
            if cell > worst.0 {
                let what = match (run.leaked, run.changed) {
                    (true, _) => "the secret came out",
                    (_, true) => "something outside changed",
                    _ => "",
                };
                worst = (cell, format!("in {base}: {what}: {}", run.outcome));
            }
        }
        Ok(worst)
    }

    /// Whether it can be tried in a mode: an attack with answers of its own is for one mode alone.
    fn is_for(&self, mode: Mode) -> bool {
        match mode {
            _ if !self.judged_in.contains(&mode) => false,
            _ if self.flags.contains("--ask") => mode == Mode::Run,
            Mode::Bare => !self.bare,
            _ => true,
        }
    }

    /// Name of this attack in `verdicts.txt`.
    fn name(&self) -> String {
        let cwd = if self.cwd == "{prj}" { String::new() } else { format!("[in {}]", self.cwd) };
        let bare = if self.bare { "[bare]" } else { "" };
        let before = if self.before.is_empty() { String::new() } else { format!("[after {}]", self.before) };
        let label = if self.label.is_empty() { String::new() } else { format!("[{}]", self.label) };
        let words = [self.chain, self.flags, &cwd, bare, &before, &label];
        words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(" ")
    }

    /// Failures of an attack with another program or another copy of nono: it is checked in its modes, and has no
    /// column.
    fn held(&self) -> Vec<String> {
        let judge = |mode: &Mode| match self.judged(*mode) {
            Ok((Cell::Held, _)) => None,
            Ok((Cell::Refused, _)) if self.may_refuse => None,
            Ok((seen, how)) => Some(format!("`{}`: {mode:?}: {seen:?}: {how}", self.chain)),
            Err(failure) => Some(failure),
        };
        self.modes.iter().filter_map(judge).collect()
    }

    /// Compares with the recorded verdicts.
    fn compared(&self, theme: &str) -> Vec<String> {
        let name = self.name();
        let expected = verdicts::expected(theme, &name);
        let (mut failures, mut row): (_, Row) = (Vec::new(), [Cell::Absent; Mode::EVERY.len()]);
        for (at, mode) in Mode::EVERY.into_iter().enumerate().filter(|(_, mode)| self.is_for(*mode)) {
            let (seen, how) = match self.judged(mode) {
                Ok(judged) => judged,
                Err(failure) => {
                    failures.push(failure);
                    continue;
                }
            };
            row[at] = seen;
            match expected.map(|row| row[at]) {
                Some(cell) if cell.admits(seen) => {}
                _ if verdicts::recording() => {}
                Some(cell) => {
                    failures.push(format!("`{name}`: {mode:?}: {seen:?}, expected {cell:?}: {how}"));
                }
                None => {
                    failures.push(format!("`{name}`: {mode:?}: {seen:?}, and verdicts.txt has no such line"));
                }
            }
        }
        if verdicts::recording() && failures.is_empty() {
            verdicts::record(theme, &name, row);
        }
        failures
    }

    /// Failures of this attack.
    fn failures(&self, theme: &str) -> Vec<String> {
        if (self.of_root || self.needs_root || self.begun.is_some()) && !is_root() {
            return skip(self.chain, "needs a harness that root started");
        }
        if self.bare && !has_bwrap() {
            return skip(self.chain, "bwrap is not installed");
        }
        for base in self.bases {
            match self.control(base) {
                Ok(None) => {}
                Ok(Some(why)) => return absent(self.chain, &why),
                Err(failure) => return vec![failure],
            }
        }
        if controls_only() {
            return Vec::new();
        }
        if self.nono == "{bin}/nono" { self.compared(theme) } else { self.held() }
    }

    /// In every mode the steps must work: the sandbox leaves them alone.
    pub(crate) fn works(&self) {
        for mode in std::iter::once(None).chain(self.modes.iter().copied().map(Some)) {
            if mode.is_none() || !controls_only() {
                let outcome = self.run(self.bases[0], mode).outcome;
                assert!(outcome.verdict() == Verdict::Worked, "`{}` in {mode:?}: {outcome}", self.chain);
            }
        }
    }

    /// One run in one mode, for its output.
    pub(crate) fn once(&self, mode: Mode) -> Outcome {
        self.run(self.bases[0], Some(mode)).outcome
    }

    /// Starts the attack and leaves it running.
    pub(crate) fn running(&self, world: &World, mode: Option<Mode>) -> Child {
        self.start(world, mode, &world.expand(self.chain))
    }
}

struct Run {
    outcome: Outcome,
    leaked: bool,
    changed: bool,
}

/// Reports what could not be tried because something the tests need is missing. On CI that is a failure.
pub(crate) fn skip(chain: &str, why: &str) -> Vec<String> {
    drop(writeln!(std::io::stderr(), "skipped: `{chain}`: {why}"));
    let on_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    if on_ci { vec![format!("`{chain}` was skipped: {why}")] } else { Vec::new() }
}

/// Reports what this kernel does not have at all, so that there is nothing to attack and nothing to install either.
fn absent(chain: &str, why: &str) -> Vec<String> {
    drop(writeln!(std::io::stderr(), "skipped: `{chain}`: not in this kernel: {why}"));
    Vec::new()
}

/// Runs every attack and reports all failures at once. The theme is the file that calls this.
#[track_caller]
pub(crate) fn check(attacks: &[Attack]) {
    let file = Path::new(std::panic::Location::caller().file());
    let theme = file.file_stem().and_then(|name| name.to_str()).expect("a file's name");
    let failures: Vec<_> = attacks.iter().flat_map(|attack| attack.failures(theme)).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Paths of the machine that exist; an attack on any other would prove nothing.
pub(crate) fn existing(paths: &[&'static str]) -> Vec<&'static str> {
    paths.iter().copied().filter(|path| PathBuf::from(path).exists()).collect()
}
