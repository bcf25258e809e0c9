//! The sockets of a supervised session: the child's, and the one for whoever started it.

use std::io;
use std::path::PathBuf;

use nono_supervisor::channel::{Bounds, Channels, Listening, REQUEST_SOCKET, SessionInfo};

use super::folder::SessionFolder;
use crate::control::Place;

/// Bound, and waiting for somebody to serve them.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) channels: Channels,
    /// Where the session is found from outside; removed when it has ended.
    pub(super) place: Option<Place>,
    /// Why it is not.
    pub(super) unlisted: Option<io::Error>,
}

/// The child's socket must be there, or the run has failed. A state folder that cannot be written costs only `nono ps`.
pub(super) fn bind(
    folder: &SessionFolder,
    state_dir: &std::path::Path,
    info: SessionInfo,
) -> io::Result<Sockets> {
    let request = Listening::bind(&folder.dir, REQUEST_SOCKET)?;
    let own = folder.dir.file_name().unwrap_or_default().to_string_lossy();
    let (place, control, unlisted) = match Place::make(state_dir, &info, &own) {
        Ok((place, control)) => (Some(place), Some(control), None),
        Err(error) => (None, None, Some(error)),
    };
    let channels = Channels { request: Some(request), control, info, bounds: Bounds::default() };
    Ok(Sockets { channels, place, unlisted })
}

/// Where the child finds its socket.
pub(super) fn request_socket(folder: &SessionFolder) -> PathBuf {
    folder.dir.join(REQUEST_SOCKET)
}
