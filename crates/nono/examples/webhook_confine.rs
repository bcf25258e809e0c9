//! What the webhook's helper can still do once it has confined itself.
//!
//! `cargo run --example webhook_confine -- FILE FOLDER PORT` prints one word per attempt, before and after: `read` a file,
//! `make` one in a folder, `connect` to a port on this machine, `run` a program, `names` to look a name up; each followed
//! by `yes` or `no`.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, folder, port] = &args[..] else {
        return Err("usage: webhook_confine FILE FOLDER PORT".into());
    };
    let port = port.parse()?;
    attempt(file, Path::new(folder), port)?;
    nono::helper::confine()?;
    attempt(file, Path::new(folder), port)?;
    Ok(())
}

fn attempt(file: &str, folder: &Path, port: u16) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut say = |what: &str, yes: bool| writeln!(out, "{what} {}", if yes { "yes" } else { "no" });
    say("read", std::fs::read(file).is_ok())?;
    say("make", std::fs::write(folder.join("made"), "x").is_ok())?;
    say("connect", TcpStream::connect(("127.0.0.1", port)).is_ok())?;
    say("run", Command::new("/bin/true").status().is_ok_and(|status| status.success()))?;
    say("names", ("localhost", port).to_socket_addrs().is_ok())
}
