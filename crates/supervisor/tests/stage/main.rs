//! Leases of the user's terminal around real programs in a real terminal (tmux).
//!
//! This program has two roles: started as `player` it runs a command and prompts; otherwise it is the tests. It has no
//! harness because a run has to take over the signals before there is any other thread.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod player;
mod tests;
mod world;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[0].ends_with("player") {
        std::process::exit(player::play(&args[1..]));
    }
    // As `cargo test` calls it: a part of a name, and flags for a harness.
    let wanted = args.iter().skip(1).find(|arg| !arg.starts_with('-'));
    if args.iter().any(|arg| arg == "--list") {
        return;
    }
    for (name, test) in tests::ALL {
        if wanted.is_none_or(|wanted| name.contains(wanted.as_str())) {
            println!("test {name}");
            test();
        }
    }
}
