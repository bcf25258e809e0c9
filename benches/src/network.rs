//! Cost of the filtered network, compared with `tinyproxy`: the same client and server, through nono's proxy from
//! inside the sandbox, and through `tinyproxy` without a sandbox.

mod client;
mod server;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nono_audit::event::{AuditEvent, SessionStarted, Warning};
use nono_audit::{AuditLog, Digest};

pub(crate) use client::client;
use client::{Load, Told};
use server::Server;

use crate::measure::{Row, Table, median, time};
use crate::options::Options;
use crate::snapshot::ground::{Ground, Tools, has};
use crate::snapshot::{disk, helper_folder};

pub(crate) fn rows(options: &Options, table: &mut Table) {
    audit(options, table);
    if !has("tinyproxy") {
        eprintln!("skipped: the network, because tinyproxy is not installed");
        return;
    }
    let (_folder, helper) = helper_folder();
    let ground = Ground::below(&disk(), &Tools { helper: helper.clone(), calm: false });
    fs::copy(&options.nono, ground.path("nono")).expect("the nono binary");
    let bench = Bench { helper: helper.display().to_string(), server: Server::start(), ground };
    let tiny = Tiny::start(&bench);
    let (megabytes, requests, connections, rounds) =
        if options.quick { (20, 100, 20, 1) } else { (1024, 10_000, 500, 5) };
    let mut errors = 0;
    for (name, tunnel) in [("plain", false), ("CONNECT", true)] {
        let load = Load { tunnel, connections: 1, requests: 1, bytes: megabytes << 20 };
        let (theirs, ours) = bench.compare(&tiny, load, rounds);
        errors += ours.errors;
        let speed = |told: &Told| megabytes as f64 / told.seconds;
        let text = |told: &Told| format!("{:.0} MB/s", speed(told));
        let what = format!("{megabytes} MB, {name}, / `tinyproxy` (more is better)");
        table.push(Row::new(&what, text(&theirs), text(&ours), speed(&ours) / speed(&theirs), "0.7"));
    }
    // `tinyproxy` closes a connection after each answer.
    let load = Load { tunnel: false, connections, requests: connections, bytes: 1000 };
    let (theirs, ours) = bench.compare(&tiny, load, rounds);
    errors += ours.errors;
    let rate = |told: &Told| connections as f64 / told.seconds;
    let text = |told: &Told| format!("{:.0}/s", rate(told));
    let what = format!("{connections} connections at once, a request each / `tinyproxy` (more is better)");
    table.push(Row::new(&what, text(&theirs), text(&ours), rate(&ours) / rate(&theirs), "0.7"));
    let load = Load { tunnel: false, connections, requests, bytes: 1000 };
    let ours = Told::middle((0..rounds).map(|_| bench.filtered(load)).collect());
    let rate = format!("{:.0}/s", requests as f64 / ours.seconds);
    table.push(Row::fact(&format!("{requests} requests over {connections} kept connections"), rate, "-"));
    table.push(Row::fact("errors in all of those", (errors + ours.errors).to_string(), "0"));
    table.push(Row::size("the filter's memory at its peak there", ours.memory, "50 MB"));
    for (name, tunnel) in [("plain", false), ("CONNECT", true)] {
        let load =
            Load { tunnel, connections: 1, requests: if options.quick { 50 } else { 5_000 }, bytes: 100 };
        let direct: Vec<f64> = (0..rounds).map(|_| bench.direct(load).median).collect();
        let filtered: Vec<f64> = (0..rounds).map(|_| bench.filtered(load).median).collect();
        let added = (median(filtered) - median(direct)) * 1e3;
        table.push(Row::fact(
            &format!("a request on a kept connection, {name}: added"),
            time(added),
            "0.3 ms",
        ));
    }
}

/// One record of the audit log, without waiting for the disk.
fn audit(options: &Options, table: &mut Table) {
    let folder = tempfile::tempdir_in(disk()).expect("a folder");
    let started = SessionStarted {
        time_ms: 0,
        session_id: "bench".to_owned(),
        name: None,
        version: String::new(),
        pid: 1,
        command: vec![],
        workdir: "/".into(),
        executable: None,
        policy_digest: Digest::ZERO,
        tracked_paths: vec![],
        network: String::new(),
        project_profiles: Vec::new(),
        ledger_head: None,
    };
    let log = AuditLog::create(folder.path(), started, nono_audit::log::Options::default()).expect("a log");
    let event =
        AuditEvent::Warning(Warning { time_ms: 1, message: "a record of ordinary length, ".repeat(8) });
    let records: u32 = if options.quick { 500 } else { 50_000 };
    let times = (0..5).map(|_| {
        let begin = std::time::Instant::now();
        for _ in 0..records {
            log.note(&event).expect("a record");
        }
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(records)
    });
    let each = median(times.collect());
    table.push(Row::fact("an audit record, without waiting for the disk", format!("{each:.1} us"), "20 us"));
}

struct Bench {
    ground: Ground,
    helper: String,
    server: Server,
}

impl Bench {
    /// Runs both in turn, and returns the medians by time.
    fn compare(&self, tiny: &Tiny, load: Load, rounds: usize) -> (Told, Told) {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            theirs.push(self.through(tiny, load));
            ours.push(self.filtered(load));
        }
        let (theirs, ours) = (Told::middle(theirs), Told::middle(ours));
        assert_eq!(theirs.errors, 0, "the reference failed, so there is nothing to compare with");
        (theirs, ours)
    }

    fn direct(&self, load: Load) -> Told {
        let mut command = self.ground.command(&self.helper);
        command.args(load.words(None, self.server.port));
        told(&mut command, None)
    }

    fn through(&self, tiny: &Tiny, load: Load) -> Told {
        let mut command = self.ground.command(&self.helper);
        command.args(load.words(Some(&format!("http://127.0.0.1:{}", tiny.port)), self.server.port));
        told(&mut command, None)
    }

    /// Runs the client inside the sandbox.
    fn filtered(&self, load: Load) -> Told {
        let mut command = self.ground.command(self.ground.path("nono"));
        let host = format!("127.0.0.1:{}", self.server.port);
        command.env("NONO_HOME", self.ground.path("state")).env("TMPDIR", self.ground.path("home"));
        command.args(["run", "--silent", "--allow-domain", &host, "--read"]);
        command.arg(Path::new(&self.helper).parent().expect("a folder")).args(["--", &self.helper]);
        command.args(load.words(Some("env"), self.server.port));
        told(&mut command, Some("__proxy"))
    }
}

/// Run a client to its end; with the peak memory of the process below it that was started as `beside`.
fn told(command: &mut Command, beside: Option<&str>) -> Told {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a client");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let line = lines.next().expect("what it measured").expect("text");
    let memory = beside.map_or(0.0, |word| peak(child.id(), word));
    // It waits until it was looked at.
    drop(child.stdin.take());
    assert!(child.wait().expect("its end").success(), "the client failed: {line}");
    Told { memory, ..Told::parse(&line) }
}

/// Megabytes, of the child of `parent` with this word among its arguments.
fn peak(parent: u32, word: &str) -> f64 {
    let of = |pid: &str, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let is_it = |pid: &String| {
        of(pid, "status").contains(&format!("PPid:\t{parent}\n")) && of(pid, "cmdline").contains(word)
    };
    let pid = names.into_iter().find(is_it).expect("the filter's process");
    let status = of(&pid, "status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its memory");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("a number") / 1e3
}

/// The reference, as the ordinary user.
struct Tiny {
    child: Child,
    port: u16,
}

impl Tiny {
    fn start(bench: &Bench) -> Tiny {
        let port = server::free_port();
        let conf = bench.ground.path("tinyproxy.conf");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 1000\nLogLevel Critical\nAllow 127.0.0.1\n"
        );
        fs::write(&conf, text).expect("its settings");
        let mut command = bench.ground.command("tinyproxy");
        let child = command.args(["-d", "-c"]).arg(&conf).stdout(Stdio::null()).spawn().expect("tinyproxy");
        server::wait_for(port);
        Tiny { child, port }
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        // It is ended in any case when this program is.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
