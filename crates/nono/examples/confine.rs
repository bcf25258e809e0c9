//! Confine this process to one folder, then show what it can and cannot reach.
//!
//! `cargo run --example confine -- FOLDER OUTSIDE_FILE` prints one word per attempt: `inside`, `outside`, `network`,
//! `again` (a second, tighter sandbox), each followed by `yes` or `no`.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;

use nono::{AccessMode, CapabilitySet, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, outside] = &args[..] else { return Err("usage: confine FOLDER OUTSIDE_FILE".into()) };
    let caps =
        CapabilitySet::builder().allow_path(folder, AccessMode::ReadWrite)?.allow_network(false).build()?;
    Sandbox::apply(&caps)?;

    let inside = Path::new(folder).join("made-inside");
    let mut out = std::io::stdout().lock();
    let mut say = |what: &str, yes: bool| writeln!(out, "{what} {}", if yes { "yes" } else { "no" });
    say("inside", std::fs::write(&inside, "hello").is_ok())?;
    say("outside", std::fs::read(outside).is_ok())?;
    say("network", TcpListener::bind("127.0.0.1:0").is_ok())?;

    let tighter = CapabilitySet::builder().allow_path(folder, AccessMode::Read)?.build()?;
    Sandbox::apply(&tighter)?;
    say("again", std::fs::write(&inside, "more").is_ok())?;
    Ok(())
}
