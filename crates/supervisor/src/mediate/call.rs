//! Opening call, copied once out of the memory of the thread that made it.

use nono_policy::AccessMode;
use nono_sys::notify::{self, Notification, PATH_MAX};

use super::allow_table::{READ, WRITE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathStart {
    WorkingDirectory,
    Descriptor(i32),
}

impl PathStart {
    #[allow(clippy::cast_possible_truncation, reason = "the kernel takes this argument as int, too")]
    pub(super) fn of(fd: u64) -> PathStart {
        match fd as i32 {
            libc::AT_FDCWD => PathStart::WorkingDirectory,
            fd => PathStart::Descriptor(fd),
        }
    }
}

/// Flags, mode and resolution of an open, as `openat2` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenRequest {
    pub(super) flags: i32,
    pub(super) mode: u32,
    pub(super) resolve: u64,
}

/// Length of `struct open_how` as this code knows it.
const HOW_LENGTH: usize = 24;

/// Kernel's value; the C library defines it as 0.
const O_LARGEFILE: i32 = if cfg!(target_arch = "x86_64") { 0o100_000 } else { 0o400_000 };
/// Flags that may be combined with `O_PATH`.
const WITH_PATH: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
const KNOWN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_SYNC
    | libc::O_ASYNC
    | libc::O_DIRECT
    | libc::O_NOATIME
    | libc::O_TMPFILE
    | O_LARGEFILE
    | WITH_PATH;
const KNOWN_RESOLVE: u64 = 0x3f;
/// `RESOLVE_BENEATH` and `RESOLVE_IN_ROOT`: at most one of them.
const ANCHORS: u64 = 0x08 | 0x10;
const ALL_MODES: u32 = 0o7777;

impl OpenRequest {
    pub(super) fn creates(self) -> bool {
        self.flags & libc::O_CREAT != 0
    }

    pub(super) fn has(self, flags: i32) -> bool {
        self.flags & flags == flags
    }

    /// Arguments as `open` and `openat` read them: unknown flags are ignored.
    fn plain(flags: i32, mode: u32) -> OpenRequest {
        let known = if flags & libc::O_PATH == 0 { KNOWN_FLAGS } else { WITH_PATH };
        let flags = flags & known;
        let makes = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
        OpenRequest { flags, mode: if makes { mode & ALL_MODES } else { 0 }, resolve: 0 }
    }

    /// Whether the flags are consistent. If not, or if they are newer than this code, the kernel returns the error.
    pub(super) fn is_sound(self) -> bool {
        let temporary = self.has(libc::O_TMPFILE);
        let mode = if self.creates() || temporary { ALL_MODES } else { 0 };
        let alone = if self.has(libc::O_PATH) { WITH_PATH } else { KNOWN_FLAGS };
        self.flags & !alone == 0
            && self.mode & !mode == 0
            && self.resolve & !KNOWN_RESOLVE == 0
            && self.resolve & ANCHORS != ANCHORS
            && !(self.has(libc::O_CREAT | libc::O_DIRECTORY) || temporary && self.creates())
            && !(temporary && self.flags & libc::O_ACCMODE == libc::O_RDONLY)
            // `O_TMPFILE`'s own bit without `O_DIRECTORY`.
            && (temporary || self.flags & libc::O_TMPFILE & !libc::O_DIRECTORY == 0)
    }

    /// Rights needed on an existing object. Truncating is writing, whatever the access mode says.
    pub(super) fn rights(self) -> u8 {
        let mode = match self.flags & libc::O_ACCMODE {
            libc::O_RDONLY => READ,
            libc::O_WRONLY => WRITE,
            // 3 is "for ioctl only", and needs both.
            _ => READ | WRITE,
        };
        if self.has(libc::O_TRUNC) || self.has(libc::O_TMPFILE) { mode | WRITE } else { mode }
    }
}

pub(super) fn access(rights: u8) -> AccessMode {
    match rights {
        READ => AccessMode::Read,
        WRITE => AccessMode::Write,
        _ => AccessMode::ReadWrite,
    }
}

/// Numeric arguments of an opening call. What is in memory is read later, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) start: PathStart,
    pub(super) path: u64,
    how: HowAt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HowAt {
    Given(OpenRequest),
    Memory { address: u64, size: u64 },
}

impl Opening {
    /// Parses a call; `None` if it is not an opening call.
    #[allow(clippy::cast_possible_truncation, reason = "the kernel takes these arguments as int, too")]
    pub(super) fn of(call: &Notification) -> Option<Opening> {
        let a = call.args;
        let given = |flags, mode: u64| HowAt::Given(OpenRequest::plain(flags, mode as u32));
        let start = PathStart::of;
        Some(match call.nr {
            libc::SYS_openat => Opening { start: start(a[0]), path: a[1], how: given(a[2] as i32, a[3]) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => {
                Opening { start: PathStart::WorkingDirectory, path: a[0], how: given(a[1] as i32, a[2]) }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => Opening {
                start: PathStart::WorkingDirectory,
                path: a[0],
                how: given(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, a[1]),
            },
            libc::SYS_openat2 => {
                Opening { start: start(a[0]), path: a[1], how: HowAt::Memory { address: a[2], size: a[3] } }
            }
            _ => return None,
        })
    }

    pub(super) fn how(&self, tid: u32) -> Result<OpenRequest, i32> {
        match self.how {
            HowAt::Given(how) => Ok(how),
            HowAt::Memory { address, size } => read_how(tid, address, size),
        }
    }
}

/// Reads the struct as the kernel does: a longer one is fine as long as nothing unknown is set.
fn read_how(tid: u32, address: u64, size: u64) -> Result<OpenRequest, i32> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size < HOW_LENGTH {
        return Err(libc::EINVAL);
    }
    if size > PATH_MAX {
        return Err(libc::E2BIG);
    }
    let mut bytes = [0u8; PATH_MAX];
    notify::read_exactly(tid, address, &mut bytes[..size])?;
    if bytes[HOW_LENGTH..size].iter().any(|byte| *byte != 0) {
        return Err(libc::E2BIG);
    }
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let flags = i32::try_from(word(0)).map_err(|_| libc::EINVAL)?;
    let mode = u32::try_from(word(8)).map_err(|_| libc::EINVAL)?;
    Ok(OpenRequest { flags, mode, resolve: word(16) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(flags: i32) -> OpenRequest {
        OpenRequest { flags, mode: 0, resolve: 0 }
    }

    #[test]
    fn emptying_is_writing() {
        assert_eq!(how(libc::O_RDONLY).rights(), READ);
        assert_eq!(how(libc::O_RDONLY | libc::O_TRUNC).rights(), READ | WRITE);
        assert_eq!(how(libc::O_WRONLY).rights(), WRITE);
        assert_eq!(how(libc::O_RDWR).rights(), READ | WRITE);
        assert_eq!(how(3).rights(), READ | WRITE);
        assert_eq!(how(libc::O_RDONLY | libc::O_CREAT).rights(), READ);
    }

    #[test]
    fn what_the_kernel_refuses_is_left_to_it() {
        let sound = |flags, mode, resolve| OpenRequest { flags, mode, resolve }.is_sound();
        assert!(sound(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | O_LARGEFILE, 0o6777, 0));
        assert!(sound(libc::O_TMPFILE | libc::O_RDWR, 0o600, 0));
        assert!(sound(libc::O_PATH | libc::O_CLOEXEC, 0, 0x1f & !0x10));
        for (flags, mode, resolve) in [
            (libc::O_RDONLY, 0o600, 0),
            (libc::O_CREAT, 0o10_000, 0),
            (libc::O_CREAT | libc::O_DIRECTORY, 0o600, 0),
            (libc::O_TMPFILE, 0o600, 0),
            (libc::O_TMPFILE & !libc::O_DIRECTORY | libc::O_RDWR, 0, 0),
            (libc::O_PATH | libc::O_APPEND, 0, 0),
            (1 << 29, 0, 0),
            (0, 0, 0x40),
            (0, 0, 0x18),
            (0, 0, 1 << 40),
        ] {
            assert!(!sound(flags, mode, resolve), "{flags:#x} {mode:#o} {resolve:#x}");
        }
        assert_eq!(
            OpenRequest::plain(libc::O_PATH | libc::O_RDWR | libc::O_CREAT, 0o600).flags,
            libc::O_PATH
        );
        assert!(OpenRequest::plain(1 << 29 | libc::O_RDWR, 0o100_644).is_sound());
    }

    #[test]
    fn int_arguments_are_looked_at_as_the_kernel_does() {
        let call = |args| Notification { id: 1, tid: 1, nr: libc::SYS_openat, args };
        let high = 0xffff_ffff_0000_0000;
        let opening = Opening::of(&call([high | 0xffff_ff9c, 7, high | 2, 0, 0, 0])).unwrap();
        assert_eq!(opening.start, PathStart::WorkingDirectory);
        assert_eq!(opening.how(0).unwrap().flags, libc::O_RDWR);
    }

    #[test]
    fn a_struct_in_memory_is_read_as_the_kernel_reads_it() {
        let own = std::process::id();
        let mut words = [0u64; 4];
        words[0] = libc::O_WRONLY as u64;
        words[2] = 8;
        let address = words.as_ptr() as u64;
        assert_eq!(
            read_how(own, address, 24),
            Ok(OpenRequest { flags: libc::O_WRONLY, mode: 0, resolve: 8 })
        );
        assert!(read_how(own, address, 32).is_ok(), "longer, and nothing set there");
        assert_eq!(read_how(own, address, 16), Err(libc::EINVAL));
        assert_eq!(read_how(own, 8, 24), Err(libc::EFAULT));
        let longer = [0u64, 0, 0, 1];
        assert_eq!(read_how(own, longer.as_ptr() as u64, 32), Err(libc::E2BIG));
    }
}
