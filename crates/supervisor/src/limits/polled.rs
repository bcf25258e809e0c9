//! Memory use, added up from `/proc`, init's counts and the kernel's list of sockets.
//!
//! Resident pages are not all: shared pages can be dropped from a process's own count and stay (`MADV_DONTNEED`), and
//! segments, `/dev/shm`, queues and socket buffers belong to no process at all. Not seen: pipes, buffers of TCP and UDP
//! (which the kernel bounds for the whole machine), the kernel's own records of open files, and unix sockets where the
//! network is the host's. `memfd_create` is closed by the filter: such a file could be in flight, where it is in no
//! list.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::Duration;

use nono_sys::launch::Launched;
use nono_sys::other_process;

use crate::mediate::Mediating;

/// Interval at which memory is added up.
pub(super) const POLL: Duration = Duration::from_millis(20);
/// Number of polls between slow measurements.
const SELDOM: u32 = 5;
const PAGE: u64 = 4096;

#[derive(Debug)]
pub(super) struct Polled {
    init: i32,
    /// Whether the command has a network of its own: every unix socket there belongs to it.
    own_network: bool,
    turn: u32,
    /// Bytes counted by init: System V segments and queues, and `/dev/shm`.
    counted: u64,
    /// Whether init was asked and has not answered yet.
    asked: bool,
    slow: Slow,
}

/// Measurements made only now and then.
#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    /// Anonymous shared memory, by its size.
    shared: u64,
    /// Page tables and swapped-out pages.
    unmapped: u64,
    sockets: u64,
}

/// Page counts of one process, from its `statm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pages {
    size: u64,
    resident: u64,
    shared: u64,
    data: u64,
}

impl Polled {
    pub(super) fn new(init: i32, own_network: bool) -> Polled {
        Polled { init, own_network, turn: 0, counted: 0, asked: false, slow: Slow::default() }
    }

    pub(super) fn counted(&mut self, pages: i32) {
        self.asked = false;
        self.counted = u64::from(pages.unsigned_abs()) * PAGE;
    }

    /// Bytes in use. A process that ends during the measurement counts as nothing.
    pub(super) fn look(&mut self, launched: &Launched, mediator: Option<&Mediating>) -> io::Result<u64> {
        if !self.asked {
            self.asked = launched.control.measure()?;
        }
        let processes: Vec<(i32, Pages)> =
            other_process::below(self.init).into_iter().map(|pid| (pid, pages(pid))).collect();
        if self.turn.is_multiple_of(SELDOM) {
            let sockets = mediator.filter(|_| self.own_network).map_or(0, Mediating::unix_memory);
            self.slow = Slow { sockets, ..slow(&processes) };
        }
        self.turn = self.turn.wrapping_add(1);
        Ok(sum(processes.iter().map(|(_, pages)| *pages), self.counted, self.slow))
    }
}

/// Sum of all kinds. Mapped memory is counted by its processes and unmapped memory by its kind; nothing is counted
/// twice.
fn sum(processes: impl Iterator<Item = Pages>, counted: u64, slow: Slow) -> u64 {
    let (own, shared) = processes.fold((0, 0), |(own, shared), pages| {
        (own + pages.resident.saturating_sub(pages.shared), shared + pages.shared)
    });
    own * PAGE + (shared * PAGE).max(counted + slow.shared) + slow.unmapped + slow.sockets
}

/// Whether the processes below `init` can be added up at all: a hidden `/proc` would make every sum zero.
pub(super) fn can_measure(init: i32) -> bool {
    fs::read_to_string(format!("/proc/{init}/task/{init}/children")).is_ok()
}

fn pages(pid: i32) -> Pages {
    parse_statm(&fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default()).unwrap_or_default()
}

fn parse_statm(text: &str) -> Option<Pages> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let (size, resident, shared) = (words.next()??, words.next()??, words.next()??);
    Some(Pages { size, resident, shared, data: words.nth(2)?? })
}

fn slow(processes: &[(i32, Pages)]) -> Slow {
    let read = |pid, file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let mut sizes = HashMap::new();
    let mut unmapped = 0;
    for (pid, pages) in processes {
        unmapped += parse_status(&read(pid, "status"));
        // Neither private nor resident: its mappings are read.
        if pages.size.saturating_sub(pages.data) > pages.resident {
            parse_maps(&read(pid, "maps"), &mut sizes);
        }
    }
    Slow { shared: sizes.values().sum(), unmapped, sockets: 0 }
}

/// Bytes of page tables and swapped-out pages.
fn parse_status(text: &str) -> u64 {
    let kib = |line: &str| line.strip_suffix("kB")?.trim().parse::<u64>().ok();
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).and_then(kib).unwrap_or(0);
    (of("VmPTE:") + of("VmSwap:")) * 1024
}

/// Adds the size of each shared mapping without a file, by its inode.
fn parse_maps(text: &str, sizes: &mut HashMap<u64, u64>) {
    let shared = text.lines().filter(|line| line.ends_with("/dev/zero (deleted)"));
    for (inode, end) in shared.filter_map(parse_mapping) {
        let size = sizes.entry(inode).or_default();
        *size = end.max(*size);
    }
}

/// Inode of a mapping, and the offset at which it ends.
fn parse_mapping(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let length = hex(to)?.checked_sub(hex(from)?)?;
    let offset = hex(words.nth(1)?)?;
    Some((words.nth(1)?.parse().ok()?, offset.checked_add(length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_pages_are_counted_once_where_their_kind_is_known() {
        let process = Pages { size: 1000, resident: 100, shared: 40, data: 50 };
        let slow = Slow { shared: 10 * PAGE, unmapped: PAGE, sockets: 2 * PAGE };
        assert_eq!(sum([process, process].into_iter(), 0, Slow::default()), 200 * PAGE);
        assert_eq!(sum([process].into_iter(), 20 * PAGE, slow), 103 * PAGE, "mapped already");
        assert_eq!(
            sum([process].into_iter(), 200 * PAGE, slow),
            (60 + 210 + 3) * PAGE,
            "not mapped by any process"
        );
    }

    #[test]
    fn what_proc_says_is_read() {
        let statm = parse_statm("5000 300 120 10 0 700 0\n").unwrap();
        assert_eq!(statm, Pages { size: 5000, resident: 300, shared: 120, data: 700 });
        assert_eq!(parse_statm(""), None);
        assert_eq!(parse_status("VmRSS:\t 9 kB\nVmPTE:\t      12 kB\nVmSwap:\t       4 kB\n"), 16 * 1024);
        let mut sizes = HashMap::new();
        let maps = "7f0000000000-7f0000100000 rw-s 00000000 00:01 1027 /dev/zero (deleted)\n\
                    7f0000200000-7f0000300000 rw-s 00100000 00:01 1027 /dev/zero (deleted)\n\
                    7f0000400000-7f0000500000 rw-p 00000000 08:01 55 /usr/lib/libc.so\n";
        parse_maps(maps, &mut sizes);
        parse_maps(maps, &mut sizes);
        assert_eq!(sizes, HashMap::from([(1027, 0x20_0000)]));
    }
}
