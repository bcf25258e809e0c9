//! Cost of a checkpoint for a coding agent: the hook before a tool call, as the agent runs it, on a tree where nothing
//! changed, on one where a hundred files did, and on projects of several sizes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::measure::{Row, Table, median, time};
use crate::options::Options;
use crate::snapshot::ground::{Ground, Tools};
use crate::snapshot::tree::{Source, Victims, generate};
use crate::snapshot::{disk, helper_folder};

/// Number of files that change between two checkpoints.
const CHANGED: usize = 100;

pub(crate) fn rows(options: &Options, table: &mut Table) {
    let (_folder, helper) = helper_folder();
    let tools = Tools { helper, calm: !options.quick };
    let disk = disk();
    let source = Source::find(options, &disk);
    let bench = Bench { ground: Ground::below(&disk, &tools), options };
    fs::copy(&options.nono, bench.ground.path("nono")).expect("the nono binary");
    bench.switch_on();
    let tree = source.put(&bench.ground, "tree");
    let shadow = Shadow::begin(&bench.ground, &tree);
    bench.first(&tree);
    bench.unchanged(&tree, &shadow, table);
    bench.changed(&tree, &shadow, table);
    bench.sized(table);
}

struct Bench<'a> {
    ground: Ground,
    options: &'a Options,
}

/// A bare repository beside the tree, as other tools keep one.
struct Shadow {
    git: String,
}

impl Shadow {
    fn begin(ground: &Ground, tree: &Path) -> Shadow {
        let git = format!("git --git-dir=../shadow.git --work-tree=. -C {}", tree.display());
        ground.sh(&format!(
            "git init -q --bare shadow.git; {git} config user.name x; {git} config user.email x@x"
        ));
        let shadow = Shadow { git };
        ground.sh(&format!(
            "{0} add -A; {0} update-ref refs/heads/x $({0} commit-tree -m x $({0} write-tree))",
            shadow.git
        ));
        shadow
    }

    fn add(&self) -> String {
        format!("{} add -A", self.git)
    }

    /// One checkpoint of the shadow kind.
    fn checkpoint(&self) -> String {
        format!(
            "{0} read-tree refs/heads/x; {0} add -A; {0} update-ref refs/heads/x \
             $({0} commit-tree -p refs/heads/x -m x $({0} write-tree))",
            self.git
        )
    }
}

impl Bench<'_> {
    fn switch_on(&self) {
        let state = self.ground.path("state");
        fs::create_dir(&state).expect("a folder");
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .expect("permissions");
        let config = state.join("config.toml");
        // The whole source is more than the usual bound, once.
        fs::write(&config, "[checkpoints]\nenabled = true\nmax_total_size_mb = 20000\n")
            .expect("the settings");
        self.ground.give(&[&state, &config]);
    }

    /// The hook before a file is written, in a turn of its own; what it took, in milliseconds.
    fn hook(&self, tree: &Path, turn: usize) -> f64 {
        let mut command = self.hook_command(tree);
        let payload = format!(
            r#"{{"session_id":"bench-{turn}","transcript_path":"","cwd":{0:?},"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{{"file_path":"{1}/new-file","content":"x"}},"tool_use_id":"call-{turn}"}}"#,
            tree.display().to_string(),
            tree.display()
        );
        self.ground.calm();
        let begin = Instant::now();
        let mut child = command.spawn().expect("the hook starts");
        child.stdin.take().expect("piped").write_all(payload.as_bytes()).expect("the hook reads");
        let output = child.wait_with_output().expect("the hook ends");
        let took = begin.elapsed().as_secs_f64() * 1e3;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.upkeep_is_over();
        took
    }

    fn hook_command(&self, tree: &Path) -> Command {
        let mut command = self.ground.command(self.ground.path("nono"));
        command.args(["hook", "claude-code", "PreToolUse"]).current_dir(tree);
        command.env("NONO_HOME", self.ground.path("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Waits for the hook's background work, which would disturb the next measurement.
    fn upkeep_is_over(&self) {
        let lock = self.ground.path("state").join("store/maintenance");
        if let Ok(file) = fs::File::open(lock) {
            file.lock().expect("the lock of the store's maintenance");
        }
    }

    fn first(&self, tree: &Path) {
        self.hook(tree, 0);
        let listed = self.list(tree);
        assert_eq!(listed, 1, "the first hook takes a checkpoint");
    }

    /// Number of checkpoints.
    fn list(&self, tree: &Path) -> usize {
        let mut command = self.ground.command(self.ground.path("nono"));
        command.args(["checkpoints", "list", "--json"]).current_dir(tree);
        command.env("NONO_HOME", self.ground.path("state"));
        let output = command.output().expect("the list");
        let text = String::from_utf8_lossy(&output.stdout);
        text.matches("\"id\"").count()
    }

    fn unchanged(&self, tree: &Path, shadow: &Shadow, table: &mut Table) {
        let (mut reference, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.options.short_rounds() {
            reference.push(self.ground.time(&shadow.add()));
            ours.push(self.hook(tree, 100 + round));
        }
        assert_eq!(self.list(tree), 1, "nothing changed");
        let what = "`nono hook` on the source, nothing changed, to `git add -A` unchanged";
        table.push(Row::times(what, median(reference), median(ours), "1.0"));
    }

    fn changed(&self, tree: &Path, shadow: &Shadow, table: &mut Table) {
        let tracked: Vec<String> =
            self.ground.sh(&format!("{} ls-files", shadow.git)).lines().map(str::to_owned).collect();
        let victims = Victims::choose(tree, &tracked, CHANGED);
        let (mut reference, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.options.rounds() {
            victims.change(CHANGED, &format!("round {round}"));
            ours.push(self.hook(tree, 1000 + round));
            reference.push(self.ground.time(&shadow.checkpoint()));
        }
        assert_eq!(self.list(tree), 1 + self.options.rounds(), "a checkpoint for each change");
        let what = "the same with 100 files changed, to read-tree, add -A, write-tree, commit-tree";
        table.push(Row::times(what, median(reference), median(ours), "0.2"));
    }

    /// Projects of these sizes, beside `git status` on the same files; and a hook that has nothing to do: what is left
    /// of it is the walk.
    fn sized(&self, table: &mut Table) {
        let sizes: &[(usize, &str)] = if self.options.quick {
            &[(1, "-"), (100, "12 ms")]
        } else {
            &[(1, "-"), (1_000, "12 ms"), (80_000, "150 ms"), (1_000_000, "-")]
        };
        let rounds = self.options.short_rounds() * 3;
        let idle = (0..rounds).map(|_| self.idle()).collect();
        table.push(Row::fact("`nono hook` with nothing to do", time(median(idle)), "-"));
        for (files, goal) in sizes {
            let name = format!("sized-{files}");
            let tree = self.ground.path(&name);
            generate(&self.ground, &tree, *files, 2000);
            fs::write(tree.join("Makefile"), "all:\n").expect("a marker");
            self.ground.give(&[&tree.join("Makefile")]);
            let git = format!("git --git-dir=../{name}.git --work-tree=. -C {}", tree.display());
            self.ground.sh(&format!("git init -q --bare {name}.git; {git} add -A"));
            self.hook(&tree, 5000);
            self.upkeep_is_over();
            let (mut reference, mut unchanged, mut taken) = (Vec::new(), Vec::new(), Vec::new());
            for round in 0..rounds {
                reference.push(self.ground.time(&format!("{git} status --porcelain")));
                unchanged.push(self.hook(&tree, 6000 + round));
                fs::write(tree.join("edited"), format!("round {round}")).expect("an edit");
                self.ground.give(&[&tree.join("edited")]);
                taken.push(self.hook(&tree, 7000 + round));
            }
            let count = if *files == 1 { "one file".to_owned() } else { format!("{files} files") };
            let status = median(reference);
            let what = format!("`nono hook` on {count}, nothing changed, to `git status`");
            table.push(Row::times(&what, status, median(unchanged), goal));
            let what = "the same with one file changed";
            table.push(Row::times(what, status, median(taken), goal));
        }
    }

    /// The hook after a tool that only reads.
    fn idle(&self) -> f64 {
        let mut command = self.ground.command(self.ground.path("nono"));
        command.args(["hook", "claude-code", "PostToolUse"]).current_dir(self.ground.path(""));
        command.env("NONO_HOME", self.ground.path("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let begin = Instant::now();
        let mut child = command.spawn().expect("the hook starts");
        let payload =
            r#"{"session_id":"idle","hook_event_name":"PostToolUse","tool_name":"TodoRead","tool_input":{}}"#;
        child.stdin.take().expect("piped").write_all(payload.as_bytes()).expect("the hook reads");
        let output = child.wait_with_output().expect("the hook ends");
        assert!(output.status.success(), "the hook never fails");
        begin.elapsed().as_secs_f64() * 1000.0
    }
}
