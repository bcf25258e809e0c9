//! Trapped calls that the supervisor carries out itself, on behalf of the command: connecting, listening, changing
//! metadata, renaming onto a copy. The kernel is told to go on with none of them but renames, which it judges itself; behind
//! the others nothing would hold.
//!
//! [`handle`] decides and, where it cannot take long, acts. What may take long comes back as work for the [`Crew`].

mod crew;
mod metadata;
mod proof;
mod renames;
mod scene;
mod sockets;

use std::sync::Arc;

pub(super) use crew::Crew;
pub(crate) use scene::RequestDoor;
pub(super) use scene::{Call, Handled, Response, Scene, name_of, through};
pub(super) use sockets::{Bound, bound, reached};

/// What comes of a call that opens nothing.
pub(super) fn handle(scene: &Arc<Scene>, call: Call<'_>) -> Handled {
    match call.notification.nr {
        libc::SYS_connect => sockets::connect(scene, call),
        libc::SYS_listen => sockets::listen(scene, call),
        libc::SYS_renameat2 => renames::rename(scene, call),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename | libc::SYS_renameat => renames::rename(scene, call),
        // Everything else that is trapped and not about metadata is not known here, and fails.
        _ => metadata::change(scene, call),
    }
}

#[cfg(test)]
mod testing;
