//! A line, command by command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, Command,
    CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, CompoundListItem, ExtendedTestExpr,
    FunctionBody, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList,
    SeparatorOperator, SimpleCommand, Word,
};
use brush_parser::{Parser, ParserOptions};

use super::TARGETS;
use super::guard::openings;
use super::state::{Left, State, normal};
use super::words::{self, Arg, Known};

/// What a line comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Targets { targets: Vec<PathBuf>, forgets: bool },
    Unreadable,
}

/// The line, or a part of it, cannot be read or does too much.
#[derive(Debug)]
pub(super) struct Unreadable;

pub(super) type Walk<T = ()> = Result<T, Unreadable>;

/// What a command reads from its standard input.
#[derive(Clone, Debug, Default)]
pub(super) enum Input {
    #[default]
    Inherited,
    /// The output of another command.
    Pipe,
    Text(Arg),
}

/// Where a command leaves the line if it succeeds, and if it fails.
pub(super) type Ways = (State, State);

pub(super) fn line(text: &str, cwd: &Path, home: &Path) -> Found {
    let mut walker = Walker::default();
    match walker.script(text, &mut State::new(cwd, home)) {
        Err(Unreadable) => Found::Unreadable,
        Ok(()) if !walker.destructive => Found::Nothing,
        Ok(()) => Found::Targets { targets: walker.targets, forgets: walker.forgets },
    }
}

#[derive(Default)]
pub(super) struct Walker {
    targets: Vec<PathBuf>,
    destructive: bool,
    /// nono's own history or hooks are removed.
    pub(super) forgets: bool,
    functions: BTreeMap<String, FunctionBody>,
    /// Functions that run now: none calls itself here.
    calling: Vec<String>,
    depth: usize,
    steps: usize,
}

/// Scripts within scripts, and commands within commands.
const DEPTH: usize = 48;
/// Commands of a line, those of a function once for each call.
const STEPS: usize = 20_000;
/// As often as the body of a loop over known words is looked at.
const ROUNDS: usize = 32;

impl Walker {
    /// One level deeper.
    pub(super) fn within<T>(&mut self, inner: impl FnOnce(&mut Walker) -> Walk<T>) -> Walk<T> {
        self.steps += 1;
        if self.depth >= DEPTH || self.steps > STEPS {
            return Err(Unreadable);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn script(&mut self, text: &str, state: &mut State) -> Walk {
        const OPENINGS: usize = 2_500;
        if openings(text) > OPENINGS {
            return Err(Unreadable);
        }
        let program = Parser::new(text.as_bytes(), &ParserOptions::default())
            .parse_program()
            .map_err(|_| Unreadable)?;
        self.within(|walker| program.complete_commands.iter().try_for_each(|list| walker.list(list, state)))
    }

    /// Commands that run in a shell of their own and leave the line where it is.
    pub(super) fn aside(&mut self, scripts: &[String], state: &State) -> Walk {
        scripts.iter().try_for_each(|script| self.script(script, &mut state.clone()))
    }

    fn list(&mut self, CompoundList(items): &CompoundList, state: &mut State) -> Walk {
        let mut left = Left::No;
        for CompoundListItem(and_or, separator) in items {
            // What stands behind an `exit` is looked at all the same: when in doubt, yes.
            state.left = Left::No;
            match separator {
                SeparatorOperator::Async => self.and_or(and_or, &mut state.clone())?,
                SeparatorOperator::Sequence => self.and_or(and_or, state)?,
            }
            left = left.max(state.left);
        }
        state.left = left;
        Ok(())
    }

    fn and_or(&mut self, list: &AndOrList, state: &mut State) -> Walk {
        let (mut good, mut bad) = self.pipeline(&list.first, state.clone())?;
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) => {
                    let (then_good, then_bad) = self.pipeline(pipeline, good)?;
                    (good, bad) = (then_good, bad.or(then_bad));
                }
                AndOr::Or(pipeline) => {
                    let (else_good, else_bad) = self.pipeline(pipeline, bad)?;
                    (good, bad) = (good.or(else_good), else_bad);
                }
            }
        }
        *state = good.or(bad);
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: State) -> Walk<Ways> {
        if let [command] = pipeline.seq.as_slice() {
            let (good, bad) = self.command(command, state, Input::Inherited)?;
            return Ok(if pipeline.bang { (bad, good) } else { (good, bad) });
        }
        let mut input = Input::Inherited;
        for command in &pipeline.seq {
            self.command(command, state.clone(), input)?;
            input = printed(command, &state).map_or(Input::Pipe, Input::Text);
        }
        Ok((state.clone(), state))
    }

    fn command(&mut self, command: &Command, mut state: State, input: Input) -> Walk<Ways> {
        self.within(|walker| match command {
            Command::Simple(simple) => walker.simple(simple, state, input),
            Command::Compound(compound, redirects) => {
                walker.redirects(redirects.as_ref(), &state)?;
                walker.compound(compound, &mut state)?;
                Ok((state.clone(), state))
            }
            Command::Function(function) => {
                walker.functions.insert(function.fname.value.clone(), function.body.clone());
                Ok((state.clone(), state))
            }
            Command::ExtendedTest(test, redirects) => {
                walker.redirects(redirects.as_ref(), &state)?;
                walker.test(&test.expr, &state)?;
                Ok((state.clone(), state))
            }
        })
    }

    fn compound(&mut self, compound: &CompoundCommand, state: &mut State) -> Walk {
        match compound {
            CompoundCommand::Arithmetic(command) => self.expression(&command.expr.value, state),
            CompoundCommand::ArithmeticForClause(clause) => {
                for expression in
                    [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten()
                {
                    self.expression(&expression.value, state)?;
                }
                self.perhaps(&clause.body.list, state)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, state),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, &mut state.clone()),
            CompoundCommand::ForClause(clause) => {
                let mut values = Vec::new();
                for word in clause.values.iter().flatten() {
                    values.extend(self.word(word, state)?);
                }
                let known = (1..=ROUNDS).contains(&values.len());
                for value in
                    if known { values } else { vec![Arg { known: Known::Beginning, ..Arg::default() }] }
                {
                    let exact = (value.known == Known::Whole).then_some(value.text);
                    state.set(&clause.variable_name, exact);
                    self.perhaps(&clause.body.list, state)?;
                }
                Ok(())
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value, state)?;
                let mut after = state.clone();
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(pattern, state)?;
                    }
                    let mut inside = state.clone();
                    if let Some(list) = &case.cmd {
                        self.list(list, &mut inside)?;
                    }
                    after = after.or(inside);
                }
                *state = after;
                Ok(())
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, state)?;
                let mut after = state.clone();
                self.list(&clause.then, &mut after)?;
                let mut complete = false;
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition, state)?;
                    }
                    complete |= other.condition.is_none();
                    let mut inside = state.clone();
                    self.list(&other.body, &mut inside)?;
                    after = after.or(inside);
                }
                *state = if complete { after } else { after.or(state.clone()) };
                Ok(())
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, state)?;
                self.perhaps(&clause.1.list, state)
            }
            CompoundCommand::Coprocess(process) => {
                self.command(&process.body, state.clone(), Input::Pipe).map(|_| ())
            }
        }
    }

    /// A body that runs or does not.
    fn perhaps(&mut self, list: &CompoundList, state: &mut State) -> Walk {
        let before = state.clone();
        self.list(list, state)?;
        if state.left == Left::Block {
            state.left = Left::No;
        }
        *state = state.clone().or(before);
        Ok(())
    }

    fn test(&mut self, test: &ExtendedTestExpr, state: &State) -> Walk {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left, state)?;
                self.test(right, state)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner, state),
            ExtendedTestExpr::UnaryTest(_, word) => self.expression(&word.value, state),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.expression(&left.value, state)?;
                self.expression(&right.value, state)
            }
        }
    }

    /// Only the commands in it matter.
    fn expression(&mut self, text: &str, state: &State) -> Walk {
        if !text.contains(['$', '`']) {
            return Ok(());
        }
        let (_, commands) = words::document(text, true, state).ok_or(Unreadable)?;
        self.aside(&commands, state)
    }

    fn word(&mut self, word: &Word, state: &State) -> Walk<Vec<Arg>> {
        let expanded = words::expand(&word.value, state).ok_or(Unreadable)?;
        self.aside(&expanded.commands, state)?;
        Ok(expanded.args)
    }

    fn single(&mut self, word: &Word, state: &State) -> Walk<Arg> {
        let (arg, commands) = words::single(&word.value, state).ok_or(Unreadable)?;
        self.aside(&commands, state)?;
        Ok(arg)
    }

    fn simple(&mut self, command: &SimpleCommand, mut state: State, mut input: Input) -> Walk<Ways> {
        let mut assignments = Vec::new();
        let mut args = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, _) => assignments.push(self.assigned(assignment, &state)?),
                item => self.item(item, &state, &mut args, &mut input)?,
            }
        }
        if let Some(word) = &command.word_or_name {
            args.splice(0..0, self.word(word, &state)?);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &state, &mut args, &mut input)?;
        }
        if args.is_empty() {
            for (name, value) in assignments {
                state.set(&name, value);
            }
            return Ok((state.clone(), state));
        }
        self.run(&args, state, &input)
    }

    fn item(&mut self, item: &Item, state: &State, args: &mut Vec<Arg>, input: &mut Input) -> Walk {
        match item {
            Item::IoRedirect(redirect) => {
                if let Some(read) = self.redirect(redirect, state)? {
                    *input = read;
                }
            }
            Item::Word(word) | Item::AssignmentWord(_, word) => args.extend(self.word(word, state)?),
            Item::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, &mut state.clone())?;
                args.push(Arg::exact("/dev/fd/63"));
            }
        }
        Ok(())
    }

    fn assigned(&mut self, assignment: &Assignment, state: &State) -> Walk<(String, Option<String>)> {
        let (name, plain) = match &assignment.name {
            AssignmentName::VariableName(name) => (name.clone(), !assignment.append),
            AssignmentName::ArrayElementName(name, _) => (name.clone(), false),
        };
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                let arg = self.single(word, state)?;
                Ok((name, (plain && arg.known == Known::Whole).then_some(arg.text)))
            }
            AssignmentValue::Array(elements) => {
                for (key, value) in elements {
                    for word in key.iter().chain([value]) {
                        self.word(word, state)?;
                    }
                }
                Ok((name, None))
            }
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>, state: &State) -> Walk {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, state)?;
        }
        Ok(())
    }

    /// What is written to is a target; what is read, if it is known, is the answer.
    fn redirect(&mut self, redirect: &IoRedirect, state: &State) -> Walk<Option<Input>> {
        use IoFileRedirectKind as Kind;
        match redirect {
            IoRedirect::File(_, kind, IoFileRedirectTarget::Filename(word)) => {
                let arg = self.single(word, state)?;
                if !matches!(kind, Kind::Read | Kind::DuplicateInput) {
                    self.target(&arg, state);
                }
                Ok(None)
            }
            IoRedirect::File(_, kind, IoFileRedirectTarget::Duplicate(word)) => {
                let arg = self.single(word, state)?;
                let number = arg.text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                if matches!(kind, Kind::DuplicateOutput) && !(number && arg.known == Known::Whole) {
                    self.target(&arg, state);
                }
                Ok(None)
            }
            IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => Ok(None),
            IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, subshell)) => {
                self.list(&subshell.list, &mut state.clone())?;
                Ok(Some(Input::Pipe))
            }
            IoRedirect::OutputAndError(word, _) => {
                let arg = self.single(word, state)?;
                self.target(&arg, state);
                Ok(None)
            }
            IoRedirect::HereDocument(_, document) => {
                let (text, commands) =
                    words::document(&document.doc.value, document.requires_expansion, state)
                        .ok_or(Unreadable)?;
                self.aside(&commands, state)?;
                Ok(Some(Input::Text(text)))
            }
            IoRedirect::HereString(_, word) => Ok(Some(Input::Text(self.single(word, state)?))),
        }
    }

    /// A function of the line's own, if there is one of this name.
    pub(super) fn call(&mut self, name: &str, state: &mut State) -> Walk<bool> {
        let Some(FunctionBody(body, redirects)) = self.functions.get(name).cloned() else { return Ok(false) };
        if self.calling.iter().any(|called| called == name) {
            return Ok(true);
        }
        self.calling.push(name.to_owned());
        let result = self.within(|walker| {
            walker.redirects(redirects.as_ref(), state)?;
            walker.compound(&body, state)
        });
        self.calling.pop();
        if state.left == Left::Block {
            state.left = Left::No;
        }
        result.map(|()| true)
    }

    /// This may be lost or overwritten.
    pub(super) fn target(&mut self, arg: &Arg, state: &State) {
        if arg.is("-") {
            return;
        }
        let path = arg.path();
        for path in state.paths(path) {
            self.push(&path);
        }
        if arg.known == Known::Beginning && !path.is_empty() {
            self.here(state);
        }
    }

    pub(super) fn aim<'a>(&mut self, args: impl IntoIterator<Item = &'a Arg>, state: &State) {
        for arg in args {
            self.target(arg, state);
        }
    }

    /// Something where the line is may be lost.
    pub(super) fn here(&mut self, state: &State) {
        for dir in &state.dirs {
            self.push(dir);
        }
    }

    fn push(&mut self, path: &Path) {
        // Without a `.` or a `/` at its end; what `..` means is known only on disk.
        let path: PathBuf = path.components().collect();
        if !normal(&path) {
            return;
        }
        self.destructive = true;
        if self.targets.len() < TARGETS && !self.targets.contains(&path) {
            self.targets.push(path);
        }
    }

    /// What a part of the walk found.
    pub(super) fn found(&mut self, part: impl FnOnce(&mut Walker) -> Walk) -> Walk<bool> {
        let before = std::mem::replace(&mut self.destructive, false);
        let result = part(self);
        let found = std::mem::replace(&mut self.destructive, before);
        self.destructive |= found;
        result.map(|()| found)
    }
}

/// What `echo`, `printf` and `cat <<` print, if all of it is known.
fn printed(command: &Command, state: &State) -> Option<Arg> {
    let Command::Simple(simple) = command else { return None };
    let items = simple.suffix.as_ref().map(|suffix| suffix.0.as_slice()).unwrap_or_default();
    let words = items.iter().filter_map(|item| match item {
        Item::Word(word) => words::single(&word.value, state).map(|(arg, _)| arg),
        _ => None,
    });
    let words: Vec<Arg> = words.filter(|word| !(word.text.starts_with('-') && word.text.len() < 4)).collect();
    match simple.word_or_name.as_ref()?.value.as_str() {
        "echo" | "printf" if words.iter().all(|word| word.known == Known::Whole) => {
            let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            Some(Arg::exact(text.replace("\\n", "\n")))
        }
        "cat" if words.is_empty() => items.iter().find_map(|item| match item {
            Item::IoRedirect(IoRedirect::HereDocument(_, document)) => {
                words::document(&document.doc.value, document.requires_expansion, state).map(|(text, _)| text)
            }
            _ => None,
        }),
        _ => None,
    }
}
