//! Emulation of `socketpair` for datagrams.
//!
//! A datagram socket can send to any path or name without connecting, so the command gets none. Instead it gets a pair
//! whose ends keep message boundaries as well and can send only to each other (`SOCK_SEQPACKET`). Unlike with
//! datagrams, when one end is closed, the other reads end-of-file and cannot write.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::PoisonError;

use nono_sys::notify::{self, Notification};

use super::shared::MediatorShared;

const TYPE_FLAGS: i32 = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
const TYPE: i32 = 0xf;

impl MediatorShared {
    pub(super) fn pair(&self, call: &Notification) {
        self.respond(call.id, self.make_pair(call).into());
    }

    #[allow(clippy::cast_possible_truncation, reason = "the kernel takes these arguments as int, too")]
    fn make_pair(&self, call: &Notification) -> Result<(), i32> {
        let (kind, protocol) = (call.args[1] as i32, call.args[2] as i32);
        if kind & !(TYPE | TYPE_FLAGS) != 0 {
            return Err(libc::EINVAL);
        }
        if ![0, libc::PF_UNIX].contains(&protocol) {
            return Err(libc::EPROTONOSUPPORT);
        }
        // As the kernel does: an address that cannot be written to makes no descriptors.
        self.tell_pair(call, [-1, -1])?;
        let (first, second) = {
            let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
            pairs.make(kind & libc::SOCK_NONBLOCK != 0)?
        };
        let add = |fd: &OwnedFd| self.listener.add_fd(call.id, fd.as_fd(), kind & libc::SOCK_CLOEXEC != 0);
        let numbers = [add(&first)?, add(&second)?];
        self.tell_pair(call, numbers)
    }

    /// Writes both descriptor numbers to the caller's memory.
    fn tell_pair(&self, call: &Notification, numbers: [i32; 2]) -> Result<(), i32> {
        let mut bytes = [0; 2 * size_of::<i32>()];
        for (place, number) in bytes.chunks_exact_mut(size_of::<i32>()).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        if !self.listener.is_valid(call.id) {
            return Err(libc::EINTR);
        }
        notify::write_memory(call.tid, call.args[3], &bytes)
    }
}
