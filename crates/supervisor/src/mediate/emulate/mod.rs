//! Emulation of trapped calls: the supervisor carries out connecting, listening, changes of metadata and renames onto a
//! copy on behalf of the command. None of these calls is passed on to the kernel except renames, which the kernel
//! judges itself; behind the others there is no second barrier.
//!
//! [`handle`] decides and, where it cannot take long, acts. Slow calls come back as work for the [`BoundedThreads`].

mod bounded_threads;
mod context;
mod metadata;
mod renames;
mod sockets;
mod unix_sockets;

use std::sync::Arc;

pub(super) use bounded_threads::BoundedThreads;
pub(crate) use context::RequestSocket;
pub(super) use context::{
    CallContext, CallResponse, Handled, TrappedCall, errno_of, is_nameless, name_of, through,
};
pub(super) use sockets::{Bound, bound, reached};

/// Decides about a call that opens nothing.
pub(super) fn handle(scene: &Arc<CallContext>, call: TrappedCall<'_>) -> Result<Handled, i32> {
    match call.notification.nr {
        libc::SYS_connect => sockets::connect(scene, call),
        libc::SYS_listen => sockets::listen(scene, call),
        libc::SYS_renameat2 => renames::rename(scene, call),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename | libc::SYS_renameat => renames::rename(scene, call),
        // Every other trapped call that does not change metadata is unknown here and fails.
        _ => metadata::change(scene, call),
    }
}

#[cfg(test)]
mod testing;
