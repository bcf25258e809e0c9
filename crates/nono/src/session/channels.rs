//! The two sockets of a supervised session: the request socket of the child, and the control socket for commands like
//! `nono ps`.

use std::io;
use std::path::PathBuf;

use nono_supervisor::channel::{Bounds, Channels, Listening, REQUEST_SOCKET, SessionInfo};

use super::folder::SessionFolder;
use crate::control::SessionSocket;

/// Sockets that are bound and not served yet.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) channels: Channels,
    /// The session's entry in the state folder, removed when it ends.
    pub(super) place: Option<SessionSocket>,
    /// Reason why the session has no such entry.
    pub(super) unlisted: Option<io::Error>,
}

/// Bind both sockets. Without the request socket the run fails; without the control socket only `nono ps` misses the
/// session.
pub(super) fn bind(
    folder: &SessionFolder,
    state_dir: &std::path::Path,
    info: SessionInfo,
) -> io::Result<Sockets> {
    let request = Listening::bind(&folder.dir, REQUEST_SOCKET)?;
    let own = folder.dir.file_name().unwrap_or_default().to_string_lossy();
    let (place, control, unlisted) = match SessionSocket::make(state_dir, &info, &own) {
        Ok((place, control)) => (Some(place), Some(control), None),
        Err(error) => (None, None, Some(error)),
    };
    let channels = Channels { request: Some(request), control, info, bounds: Bounds::default() };
    Ok(Sockets { channels, place, unlisted })
}

pub(super) fn request_socket(folder: &SessionFolder) -> PathBuf {
    folder.dir.join(REQUEST_SOCKET)
}
