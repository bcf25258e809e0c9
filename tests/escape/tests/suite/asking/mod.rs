//! `--ask`: the supervisor opens things on the child's behalf, and the child tries to make it open, show or hand over
//! something else. Answers come from a file of rules, or from the library's example of an approver, which takes as long
//! as a test wants it to.

mod ends;
mod exact;
mod loads;
mod own;
mod races;
mod swaps;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::child::{Child, Outcome};
use crate::harness::fixture::{Maker, Nothing};
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack};

const RUN: &[Mode] = &[Mode::Run];
const ASK: &str = "--ask --approve policy:{home}/rules.json";

/// File of rules, given by their fields.
fn rules(rules: &'static [&'static str]) -> Maker {
    Box::new(move |world| {
        write_rules(world, rules);
        Box::new(Nothing)
    })
}

fn write_rules(world: &World, rules: &[&str]) {
    let rules: Vec<_> = rules.iter().map(|rule| format!("{{{}}}", world.expand(rule))).collect();
    let path = world.path("users/home/rules.json");
    fs::write(&path, format!("{{\"rules\": [{}]}}", rules.join(", "))).expect("rules");
    world.own(&path, 0o600);
}

/// Steps whose requests the rules answer.
fn ruled(steps: &'static str, answers: &'static [&'static str]) -> Attack {
    attack(steps).modes(RUN).flags(ASK).against(rules(answers))
}

/// Steps whose requests the test answers.
struct Asked {
    child: Child,
    answers: PathBuf,
    answered: usize,
}

impl Asked {
    fn start(world: &World, steps: &str) -> Asked {
        Asked::start_by(world, &world.program("approver"), steps)
    }

    fn start_by(world: &World, approver: &Path, steps: &str) -> Asked {
        Asked::start_through(world, &[approver.to_str().expect("path is text").to_owned()], steps)
    }

    /// Starts the command with `words` first; without the approver among them, it comes next.
    fn start_through(world: &World, words: &[String], steps: &str) -> Asked {
        let program = world.path("project/attacks");
        fs::copy(world.program("attacks"), &program).expect("copy");
        world.own(&program, 0o755);
        let answers = world.path("answers");
        fs::create_dir(&answers).expect("mkdir");
        let mut command = world.command(Path::new(&words[0]));
        command.args(&words[1..]);
        if !words[0].ends_with("approver") {
            command.arg(world.program("approver"));
        }
        command.arg(world.path("project")).arg(format!("@{}", answers.display())).arg("--").arg(program);
        command.args(world.expand(steps).split_whitespace());
        Asked { child: Child::start(command, None), answers, answered: 0 }
    }

    /// Next request, as it is shown.
    fn question(&mut self) -> String {
        self.child.hear(&["question:"]).unwrap_or_else(|| panic!("nothing was asked: {}", self.child.end()))
    }

    fn answer(&mut self, word: &str) {
        self.answered += 1;
        let unfinished = self.answers.join("next");
        fs::write(&unfinished, word).expect("answer");
        fs::rename(&unfinished, self.answers.join(self.answered.to_string())).expect("answer");
    }

    fn finish(self) -> Outcome {
        self.child.finish()
    }
}

fn questions(outcome: &Outcome) -> usize {
    outcome.output.lines().filter(|line| line.starts_with("question:")).count()
}

/// Runs steps without nono: they pause where the user would be asked.
fn without(world: &World, steps: &str, meanwhile: impl FnOnce(&World)) -> Outcome {
    let mut command = world.command(&world.program("attacks"));
    command.args(["pause", ","]).args(world.expand(steps).split_whitespace());
    let mut child = Child::start(command, None);
    child.hear(&["WAITING"]);
    meanwhile(world);
    child.say("");
    child.finish()
}

fn new_world() -> World {
    World::new("/var/tmp", false)
}
