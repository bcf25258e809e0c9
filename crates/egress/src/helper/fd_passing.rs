//! Passing a file descriptor along with a frame, over a stream socket.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;

use super::wire::Frames;

/// Send a whole frame, and a descriptor with its first byte.
pub(crate) fn send(mut socket: &UnixStream, frame: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let passed = [descriptor];
    if !control.push(SendAncillaryMessage::ScmRights(&passed)) {
        return Err(io::Error::other("there is no room for a descriptor"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(frame)], &mut control, SendFlags::NOSIGNAL)?;
    socket.write_all(frame.get(sent..).unwrap_or_default())
}

/// Receiver of frames and the descriptors that come with them.
#[derive(Debug)]
pub(crate) struct Inbox {
    socket: UnixStream,
    frames: Frames,
    buffer: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl Inbox {
    pub(crate) fn new(socket: UnixStream, frames: Frames) -> Inbox {
        Inbox { socket, frames, buffer: Vec::new(), descriptor: None }
    }

    /// Next frame; None at the end of the stream.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(value) = self.frames.take(&mut self.buffer)? {
                return Ok(Some(value));
            }
            if self.fill()? == 0 {
                let whole = self.buffer.is_empty();
                return if whole { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// Last descriptor received; it is available once its frame is.
    pub(crate) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut room = [IoSliceMut::new(&mut chunk)];
        let got = loop {
            match recvmsg(self.socket.as_fd(), &mut room, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                result => break result?.bytes,
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptor = descriptors.last().or(self.descriptor.take());
            }
        }
        self.buffer.extend_from_slice(&chunk[..got]);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const FRAMES: Frames = Frames { most: 1 << 20 };

    #[test]
    fn a_descriptor_arrives_with_its_frame() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let (mut passed, mut kept) = UnixStream::pair().unwrap();
        FRAMES.write(&mut here, &"before").unwrap();
        send(&here, &FRAMES.encode(&"with").unwrap(), passed.as_fd()).unwrap();
        passed.write_all(b"through").unwrap();
        drop(passed);
        let mut inbox = Inbox::new(there, FRAMES);
        assert_eq!(inbox.next::<String>().unwrap().unwrap(), "before");
        assert_eq!(inbox.next::<String>().unwrap().unwrap(), "with");
        UnixStream::from(inbox.descriptor().unwrap()).write_all(b" and through").unwrap();
        let mut said = String::new();
        kept.read_to_string(&mut said).unwrap();
        assert_eq!(said, "through and through", "and the descriptor is closed");
        drop(here);
        assert!(inbox.next::<String>().unwrap().is_none() && inbox.descriptor().is_none());
    }

    #[test]
    fn a_frame_larger_than_the_socket_holds_arrives() {
        let (here, there) = UnixStream::pair().unwrap();
        let long = "x".repeat(FRAMES.most - 2);
        let file = std::fs::File::open("/dev/null").unwrap();
        let sender = std::thread::spawn({
            let frame = FRAMES.encode(&long).unwrap();
            move || send(&here, &frame, file.as_fd())
        });
        let mut inbox = Inbox::new(there, FRAMES);
        assert!(inbox.next::<String>().unwrap().unwrap() == long && inbox.descriptor().is_some());
        sender.join().unwrap().unwrap();
    }
}
