//! Installation of a compiled seccomp program, and detection of what the kernel's seccomp supports.

use std::io;
use std::os::fd::RawFd;

use crate::raw::{Errno, io_error, sys};

/// One classic BPF instruction, laid out as the kernel wants it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

#[repr(C)]
struct FilterProgram {
    len: u16,
    filter: *const Instruction,
}

const SET_MODE_FILTER: u32 = 1;
const GET_ACTION_AVAIL: u32 = 2;
const FILTER_FLAG_TSYNC: u32 = 1;
const FILTER_FLAG_NEW_LISTENER: u32 = 1 << 3;
const FILTER_FLAG_WAIT_KILLABLE_RECV: u32 = 1 << 5;
/// Value of `SECCOMP_RET_USER_NOTIF`.
const RET_USER_NOTIF: u32 = 0x7fc0_0000;

/// Installs `program` on the calling thread, or with `all_threads` on all of them. The caller has set no_new_privs.
pub fn install(program: &[Instruction], all_threads: bool) -> io::Result<()> {
    install_raw(program, all_threads).map_err(io_error)
}

pub(crate) fn install_raw(program: &[Instruction], all_threads: bool) -> Result<(), Errno> {
    let result = set_filter(program, if all_threads { FILTER_FLAG_TSYNC } else { 0 })?;
    // With TSYNC a positive result names the thread that could not be synchronised.
    if result == 0 { Ok(()) } else { Err(libc::ESRCH) }
}

/// Installs `program` on the calling thread and returns the listener for its notifications. Where the kernel supports
/// it, a received call waits for its answer through everything but a fatal signal.
pub(crate) fn install_with_listener(program: &[Instruction]) -> Result<RawFd, Errno> {
    let listener = match set_filter(program, FILTER_FLAG_NEW_LISTENER | FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(libc::EINVAL) => set_filter(program, FILTER_FLAG_NEW_LISTENER)?,
        result => result?,
    };
    RawFd::try_from(listener).map_err(|_| libc::EMFILE)
}

fn set_filter(program: &[Instruction], flags: u32) -> Result<isize, Errno> {
    let len = u16::try_from(program.len()).map_err(|_| libc::E2BIG)?;
    let prog = FilterProgram { len, filter: program.as_ptr() };
    // SAFETY: prog and the instructions it points to live across the call; the kernel copies them.
    unsafe { sys!(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const prog) }
}

/// Whether the kernel supports notification of a supervisor (`SECCOMP_RET_USER_NOTIF`).
pub fn notify_available() -> bool {
    let action: u32 = RET_USER_NOTIF;
    // SAFETY: action lives across the call.
    unsafe { sys!(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &raw const action) }.is_ok()
}
