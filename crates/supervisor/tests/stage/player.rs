//! Program `player command…`: runs the command with a stage, and leases the terminal whenever a line comes through
//! `$TMPDIR/ask`. The results are added to `$TMPDIR/answers`.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nono_policy::{
    AccessMode, GrantKind, GrantRequest, HostContext, HostFacts, PolicyData, ProfileRef, ProfileStore,
    RunRequest,
};
use nono_sandbox::{ExecStrategy, Prepared, SessionPaths, compile, support};
use nono_supervisor::mediate::Mediate;
use nono_supervisor::terminal_lease::{TerminalInput, TerminalLeases};
use nono_supervisor::{CommandSpec, Options, run, take_signals};
use nono_sys::wait::Ended;

/// Runs the command, and ends with its exit code.
pub(crate) fn play(args: &[String]) -> i32 {
    let tmp = PathBuf::from(env::var_os("TMPDIR").unwrap());
    let stage = TerminalLeases::new().unwrap();
    let signals = take_signals().unwrap();
    let answering = Arc::new(Mutex::new(()));
    let (lender, place, answers) = (stage.clone(), tmp.clone(), Arc::clone(&answering));
    thread::spawn(move || serve(&lender, &place, &answers));
    let program =
        ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(&args[0])).find(|file| file.exists());
    let command = CommandSpec {
        program: program.unwrap_or_else(|| args[0].clone().into()),
        argv: args.iter().map(Into::into).collect(),
        env: env::vars_os().collect(),
    };
    let options = Options {
        interactive: false,
        asking: Some(stage.clone()),
        listen: false,
        output_aside: false,
        streams: None,
        cancel: None,
        grace_ms: 100,
    };
    let (prepared, mediate) = prepared(&tmp);
    let outcome = run(&prepared, &command, &options, &signals, mediate, None).unwrap();
    // There is no lease after the end.
    assert!(stage.lend().is_none());
    // A lease that is back is not yet an answer that is written.
    let _written = answering.lock().unwrap();
    match outcome.ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

fn prepared(tmp: &Path) -> (Prepared, Mediate) {
    let dir = tmp.join(format!("session-{}", std::process::id()));
    let paths = SessionPaths {
        mask_dir: dir.join("closed"),
        mask_file: dir.join("closed-file"),
        empty_dir: dir.join("empty"),
        run_dir: dir.join("run"),
        dir: dir.clone(),
        others: Vec::new(),
    };
    for dir in [&paths.dir, &paths.mask_dir, &paths.empty_dir, &paths.run_dir, &paths.tmp_dir()] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(&paths.mask_file, "").unwrap();
    let home = PathBuf::from(env::var_os("HOME").unwrap());
    let host = HostContext {
        cwd: env::current_dir().unwrap(),
        xdg_config: None,
        xdg_data: None,
        xdg_cache: None,
        xdg_state: None,
        xdg_runtime: None,
        state_dir: home.join("state"),
        config_dir: home.join("config"),
        home: Some(home),
        binary: None,
        session_dir: Some(dir),
        agent_folders: Vec::new(),
        can_mask: true,
    };
    let cwd =
        GrantRequest { path: host.cwd.clone(), access: AccessMode::ReadWrite, kind: GrantKind::Directory };
    let request = RunRequest { grants: vec![cwd], ..RunRequest::default() };
    let profile = ProfileStore::new(None).resolve(&ProfileRef::Name("default".to_owned()), &[]).unwrap();
    let policy = nono_policy::resolve(&request, &host, &profile, PolicyData::embedded(), &HostFacts).unwrap();
    let blueprint = compile(&policy, &support(), ExecStrategy::Supervised, &paths).unwrap();
    // Nothing is trapped: the prompts come through the pipe.
    let mediate = Mediate {
        policy: Arc::new(policy),
        private: vec![],
        own: vec![],
        own_network: false,
        judges_metadata: false,
        backend: None,
        snapshots: None,
        record: false,
        log: None,
        redact: None,
        urls: None,
        history: None,
        proxy: None,
    };
    (Prepared::new(blueprint, paths).unwrap(), mediate)
}

/// Takes one lease for each line. `answering` is held until its answer is written.
fn serve(stage: &TerminalLeases, tmp: &Path, answering: &Mutex<()>) {
    loop {
        // The writer of a line opens and closes the pipe each time.
        let lines = BufReader::new(File::open(tmp.join("ask")).unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            let _held = answering.lock().unwrap();
            let answer = question(stage, &line);
            let mut answers = OpenOptions::new().append(true).create(true).open(tmp.join("answers")).unwrap();
            writeln!(answers, "{line}: {answer}").unwrap();
        }
    }
}

/// Shows the line, and returns which key was pressed.
fn question(stage: &TerminalLeases, line: &str) -> String {
    let Some(lease) = stage.lend() else { return "none".to_owned() };
    let kind = if lease.full_screen { "full" } else { "line" };
    let mut disturbances = lease.disturbances();
    let show = || lease.show(&format!("[stage] {line} {kind} {}x{}? ", lease.size().0, lease.size().1));
    show().unwrap();
    loop {
        match lease.listen(Duration::from_millis(50)) {
            TerminalInput::Keys(keys) => {
                let keys = String::from_utf8_lossy(&keys).escape_debug().to_string();
                lease.show(&format!("{keys}\r\n")).unwrap();
                return keys;
            }
            TerminalInput::Nothing if lease.disturbances() != disturbances => {
                disturbances = lease.disturbances();
                lease.show("\r\n").and_then(|()| show()).unwrap();
            }
            TerminalInput::Nothing => {}
            TerminalInput::Closed => return "closed".to_owned(),
            TerminalInput::Ended => {
                lease.show("ended\r\n").unwrap();
                return "ended".to_owned();
            }
        }
    }
}
