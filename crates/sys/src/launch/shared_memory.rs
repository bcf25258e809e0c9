//! Memory of the command's namespaces that belongs to no process: System V segments and queues, and files in
//! `/dev/shm`. Only a process inside can ask for it. Raw calls only.

const PAGE: u64 = 4096;
const SHM_INFO: libc::c_int = 14;
const MSG_INFO: libc::c_int = 12;

/// Struct that the kernel fills for `SHM_INFO`.
#[repr(C)]
#[derive(Default)]
struct Segments {
    used_ids: libc::c_int,
    total: libc::c_ulong,
    resident: libc::c_ulong,
    swapped: libc::c_ulong,
    attempts: libc::c_ulong,
    successes: libc::c_ulong,
}

/// Total number of pages.
pub(super) fn pages() -> i32 {
    i32::try_from(segments() + (queues() + files()) / PAGE).unwrap_or(i32::MAX)
}

/// Pages of segments, attached or not.
fn segments() -> u64 {
    let mut info = Segments::default();
    // SAFETY: the kernel fills a struct of this shape for this command, and nothing behind it.
    let result = unsafe { libc::shmctl(0, SHM_INFO, (&raw mut info).cast()) };
    if result < 0 { 0 } else { info.resident + info.swapped }
}

/// Bytes of messages that wait in queues.
fn queues() -> u64 {
    // SAFETY: a zeroed struct is valid, and the kernel fills one of this shape for this command.
    unsafe {
        let mut info: libc::msginfo = std::mem::zeroed();
        if libc::msgctl(0, MSG_INFO, (&raw mut info).cast()) < 0 {
            return 0;
        }
        u64::from(info.msgtql.unsigned_abs())
    }
}

/// Bytes of files in `/dev/shm`, if it is the command's own: the host's is not writable.
fn files() -> u64 {
    const TMPFS: i64 = 0x0102_1994;
    // SAFETY: the path is NUL-terminated, the struct is valid zeroed and lives across the call.
    unsafe {
        let mut info: libc::statfs = std::mem::zeroed();
        if libc::statfs(c"/dev/shm".as_ptr(), &raw mut info) != 0 || info.f_type as i64 != TMPFS {
            return 0;
        }
        (info.f_blocks.saturating_sub(info.f_bfree)) * info.f_bsize.unsigned_abs()
    }
}
