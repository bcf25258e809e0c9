//! A town: a network namespace with public and private addresses, names that lead to them, and servers on all of them.
//! The command runs in it as an ordinary user. Nothing here reaches the internet.
//!
//! `allowed.test`, `other.test` and everything below `wide.test` lead to public addresses, `private.test` to a private
//! one; `server.py` answers for names that change.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

pub(crate) use nono_testkit::skip;

use super::world::{ORDINARY, World, is_root};

pub(crate) const PUBLIC: &str = "93.184.216.10";
pub(crate) const OTHER: &str = "93.184.216.11";
pub(crate) const PRIVATE: &str = "10.20.30.40";
const METADATA: &str = "169.254.169.254";

/// Only keeps what hangs from hanging the suite.
const PATIENCE: &str = "300";

/// A process that is ended with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    said: Arc<Mutex<Vec<String>>>,
    /// Closed at the end.
    _stdin: Option<ChildStdin>,
}

impl Running {
    /// Start it, and wait for the line in which it says that it is.
    pub(crate) fn start(command: &mut Command, line: &str) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let found = lines.by_ref().any(|said| said.contains(line));
        assert!(found, "{command:?} never said {line:?}");
        let said = Arc::new(Mutex::new(Vec::new()));
        let more = said.clone();
        std::thread::spawn(move || lines.for_each(|line| more.lock().unwrap().push(line)));
        let stdin = child.stdin.take();
        Running { child, said, _stdin: stdin }
    }

    /// What it has said since.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Town {
    pub(crate) world: World,
    /// What the servers work with, and note what they were asked in.
    pub(crate) folder: tempfile::TempDir,
    /// Dropped in this order.
    _servers: Running,
    namespaces: Running,
}

impl Town {
    /// None where the tests may not make one.
    pub(crate) fn new() -> Option<Town> {
        if !is_root() {
            skip("only root makes network namespaces with names of their own");
            return None;
        }
        let world = World::new();
        let folder = tempfile::Builder::new().prefix("nono-town-").tempdir_in("/tmp").unwrap();
        let hosts = format!(
            "127.0.0.1 localhost\n{PUBLIC} allowed.test a.wide.test b.a.wide.test wide.test\n{OTHER} other.test\n\
             {PRIVATE} private.test\n"
        );
        fs::write(folder.path().join("hosts"), hosts).unwrap();
        fs::write(folder.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
        let namespaces = namespaces(folder.path());
        let authority = authority(folder.path());
        world.file("work/ca.pem", &authority, 0o644);
        let mut command = enter(&namespaces);
        command.arg("/usr/bin/python3").arg(here("server.py")).arg(folder.path());
        command.arg(folder.path().join("server.pem")).args([PUBLIC, OTHER, PRIVATE]);
        let servers = Running::start(&mut command, "ready");
        Some(Town { world, folder, _servers: servers, namespaces })
    }

    /// A program in this town, by the ordinary user, in the working folder.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.world.command_of_tester("nsenter");
        let user = ORDINARY.to_string();
        command.args(into(&self.namespaces)).args(["--", "setpriv", "--clear-groups"]);
        command.args(["--reuid", &user, "--regid", &user, "--"]);
        command.arg("env").arg("-C").arg(self.world.path("work"));
        // The signals of the test go to the program, and only to it.
        command.args(["timeout", "--foreground", "-k", "5", PATIENCE, program]);
        command
    }

    /// A program in this town, by root.
    pub(crate) fn command_of_root(&self) -> Command {
        enter(&self.namespaces)
    }

    /// `nono run` with these flags, of a shell's script. The working folder is granted.
    pub(crate) fn nono(&self, flags: &[&str], script: &str) -> Command {
        let mut command = self.command("nono");
        command.args(["run", "--allow", "."]).args(flags).args(["--", "sh", "-c", script]);
        command
    }

    pub(crate) fn run(&self, flags: &[&str], script: &str) -> Ran {
        Ran::of(&mut self.nono(flags, script))
    }

    /// The same without nono: what would work does.
    #[track_caller]
    pub(crate) fn outside(&self, script: &str) -> Ran {
        Ran::of(self.command("sh").args(["-c", script]))
    }

    /// What the servers were asked, since the beginning.
    pub(crate) fn got(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("got")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The paths that a server was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        let got = self.got();
        got.iter().filter_map(|asked| Some(asked["path"].as_str()?.to_owned())).collect()
    }

    /// The last session's log, which has to be sound.
    #[track_caller]
    pub(crate) fn log(&self) -> Vec<Value> {
        let verified = Ran::of(self.command("nono").args(["audit", "verify", "last"]));
        assert_eq!(verified.code, 0, "{verified:?}");
        let shown = Ran::of(self.command("nono").args(["audit", "show", "last", "--json"]));
        assert_eq!(shown.code, 0, "{shown:?}");
        let log: Value = serde_json::from_str(&shown.out).unwrap();
        log["events"].as_array().unwrap().iter().map(|record| record["event"].clone()).collect()
    }

    /// What the last session's log has of the network, each request and tunnel once: at its end.
    #[track_caller]
    pub(crate) fn network(&self) -> Vec<Value> {
        let is_end = |event: &Value| event["type"] == "network" && event["phase"] != "opened";
        self.log().into_iter().filter(is_end).collect()
    }

    /// The tunnels that the log says were opened.
    #[track_caller]
    pub(crate) fn opened(&self) -> Vec<Value> {
        self.log().into_iter().filter(|event| event["phase"] == "opened").collect()
    }
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Ran {
        Ran::from(command.stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn from(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Ran { code, out: text(output.stdout), err: text(output.stderr) }
    }

    /// It worked, and said this.
    #[track_caller]
    pub(crate) fn says(&self, expected: &str) {
        assert!(self.code == 0 && self.out.contains(expected), "{expected:?}: {self:?}");
    }

    /// It failed, and nono said this about it.
    #[track_caller]
    pub(crate) fn footer(&self, expected: &str) {
        assert!(self.code != 0 && self.err.contains(expected), "{expected:?}: {self:?}");
    }
}

pub(crate) fn here(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network").join(below)
}

/// A process that keeps the namespaces.
fn namespaces(folder: &Path) -> Running {
    let addresses =
        [PUBLIC, OTHER, PRIVATE, METADATA].map(|address| format!("ip addr add {address}/32 dev lo"));
    let script = format!(
        "set -e; ip link set lo up; {}; mount --bind {folder}/hosts /etc/hosts; \
         mount --bind {folder}/resolv.conf /etc/resolv.conf; echo ready; exec cat",
        addresses.join("; "),
        folder = folder.display()
    );
    Running::start(Command::new("unshare").args(["--net", "--mount", "--", "sh", "-c", &script]), "ready")
}

fn into(namespaces: &Running) -> [String; 4] {
    ["-t".to_owned(), namespaces.child.id().to_string(), "--net".to_owned(), "--mount".to_owned()]
}

fn enter(namespaces: &Running) -> Command {
    let mut command = Command::new("nsenter");
    command.args(into(namespaces)).arg("--");
    command
}

/// An authority of this town, and its servers' certificate with the key in `server.pem`.
fn authority(folder: &Path) -> String {
    let script = "set -e
        key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
        openssl req -x509 $key -keyout ca.key -out ca.pem -days 30 -subj /CN=town \\
            -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
        openssl req $key -keyout server.key -out server.csr -subj /CN=server
        printf 'subjectAltName=DNS:allowed.test,DNS:other.test,DNS:private.test,DNS:mixed.test,DNS:*.wide.test,DNS:localhost,IP:127.0.0.1\\nextendedKeyUsage=serverAuth\\n' >ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile ext -out server.crt
        cat server.crt server.key >server.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::read_to_string(folder.join("ca.pem")).unwrap()
}
