//! A decision is on disk before the command sees its effect.

use std::fs;

use super::kit::Kit;

/// One system call of a thread, with the descriptor that is its first argument.
#[derive(Debug)]
struct Call {
    thread: String,
    name: String,
    fd: String,
    rest: String,
}

/// All calls in the order in which they began, each with its result: strace cuts a call in two where another thread's
/// is printed meanwhile.
fn calls(trace: &str) -> Vec<Call> {
    let mut all: Vec<Call> = Vec::new();
    for line in trace.lines() {
        let Some((thread, text)) = line.split_once(' ') else { continue };
        let text = text.trim_start();
        if let Some((_, end)) = text.strip_prefix("<... ").and_then(|text| text.split_once(" resumed>")) {
            let begun = all.iter_mut().rfind(|call| call.thread == thread);
            begun.expect("a call that ends has begun").rest.push_str(end);
        } else if let Some((name, rest)) = text.split_once('(') {
            let fd = rest.chars().take_while(char::is_ascii_digit).collect();
            all.push(Call { thread: thread.to_owned(), name: name.to_owned(), fd, rest: rest.to_owned() });
        }
    }
    all
}

#[test]
fn the_record_is_synced_before_the_file_is_handed_over() {
    let kit = Kit::new();
    let mut command = kit.world.command("strace");
    let trace = kit.world.path("tmp/trace");
    command.args(["-f", "-y", "-e", "trace=pwrite64,fdatasync,ioctl,dup,dup2,dup3", "-o"]).arg(&trace);
    command.args(["nono", "run", "--silent", "--allow-cwd"]).args(kit.asking());
    let output =
        command.args(["--", "cat", &kit.note("a"), &kit.note("b")]).output().expect("strace is installed");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\nsecond\n", "{output:?}");
    let id = kit.ids().pop_first().unwrap();
    assert_eq!(kit.events_of(&id, "capability_decision").len(), 2);

    let text = fs::read_to_string(&trace).unwrap();
    let all = calls(&text);
    // Only where it can be traced fully is a descriptor's name known; the number is the same in all threads of it.
    let named = all.iter().find(|call| call.rest.contains("events.ndjson>")).expect("the log is written");
    let handed: Vec<usize> = all
        .iter()
        .enumerate()
        .filter(|(_, call)| call.name == "ioctl" && call.rest.contains("SECCOMP_IOCTL_NOTIF_ADDFD"))
        // Whether the kernel can do it was tried out before, with a number that does not exist.
        .filter(|(_, call)| !call.rest.contains("= -1 ENOENT"))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(handed.len(), 2, "{text}");
    let mut from = 0;
    for at in handed {
        let thread = &all[at].thread;
        let before: Vec<&Call> = all[from..at]
            .iter()
            .filter(|call| call.thread == *thread && call.fd == named.fd && call.name != "ioctl")
            .collect();
        // Written, then synced to the end, by the thread that hands the file over, after whatever it handed over before.
        let [.., write, sync] = before.as_slice() else {
            panic!("nothing is written before call {at}: {text}")
        };
        assert_eq!((write.name.as_str(), sync.name.as_str()), ("pwrite64", "fdatasync"), "{text}");
        assert!(sync.rest.trim_end().ends_with("= 0"), "{sync:?}\n{text}");
        from = at;
    }
}
