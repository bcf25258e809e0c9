//! Server processes on loopback.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

pub(crate) const SECRET: &str = "a secret that is long enough";

/// A process that serves, and says what it does line by line. Ends when dropped.
pub(crate) struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    port: u16,
}

fn here(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

impl Server {
    /// Serve each connection in another of `modes`; `server.py` has them.
    pub(crate) fn start(modes: &str) -> Server {
        let mut server = Server::spawn(Command::new("python3").arg(script()).args([SECRET, modes]));
        server.port = server.line().parse().unwrap();
        server
    }

    pub(crate) fn start_tls(modes: &str, certificate: &Path) -> Server {
        let mut command = Command::new("python3");
        let mut server = Server::spawn(command.arg(script()).args([SECRET, modes]).arg(certificate));
        server.port = server.line().parse().unwrap();
        server
    }

    /// The receiver of the examples.
    pub(crate) fn receiver(secret: &Path, folder: &str) -> Server {
        let mut command = Command::new("python3");
        command.arg(here("../../examples/webhook_receiver.py")).arg("--secret").arg(secret);
        let mut server = Server::spawn(command.args(["--port", "0", "--allow-read", folder]));
        let said = server.line();
        server.port = said.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        server
    }

    fn spawn(command: &mut Command) -> Server {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Server { child, lines, port: 0 }
    }

    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/ask", self.port)
    }

    /// The next thing that happened.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next question that came.
    #[track_caller]
    pub(crate) fn question(&mut self) -> Value {
        let line = self.line();
        let question = line.strip_prefix("got ").unwrap_or_else(|| panic!("no question: {line}"));
        serde_json::from_str(question).unwrap()
    }
}

fn script() -> PathBuf {
    here("tests/approval/server.py")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
