use super::*;
use std::io::{Read, Seek, Write};
use std::os::fd::IntoRawFd;
use std::process::{Command, Stdio};

/// Process that has `file` as its standard input and waits.
fn holder(file: std::fs::File) -> std::process::Child {
    Command::new("sleep").arg("100").stdin(Stdio::from(file)).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_taken_descriptor_is_the_same_open_file() {
    let path = std::env::temp_dir().join(format!("nono-foreign-{}", std::process::id()));
    let mut file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(b"hello").unwrap();
    file.rewind().unwrap();
    let mut child = holder(file.try_clone().unwrap());
    let mut taken = std::fs::File::from(take_descriptor(child.id(), 0).unwrap());
    let mut text = String::new();
    taken.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
    assert_eq!(file.stream_position().unwrap(), 5, "one position for both");
    assert_eq!(take_descriptor(child.id(), 99).unwrap_err(), libc::EBADF);
    assert!(below(std::process::id() as i32).contains(&(child.id() as i32)));
    assert_eq!(process_of(child.id()), Some(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(take_descriptor(child.id(), 0).is_err());
}

/// A thread may have a descriptor table of its own; a number means what it is there.
#[test]
fn a_thread_with_its_own_descriptors_is_asked_itself() {
    let (told, tells) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // SAFETY: only numbers; this thread's table is its own from here on, without what other tests have open.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
        let own = std::fs::File::open("/dev/zero").unwrap().into_raw_fd();
        // SAFETY: only numbers.
        let high = unsafe { libc::fcntl(own, libc::F_DUPFD_CLOEXEC, 900) };
        // SAFETY: no memory is passed.
        told.send((unsafe { libc::gettid() }, high)).unwrap();
        ended.recv().ok();
    });
    let (tid, fd) = tells.recv().unwrap();
    let taken = take_descriptor(tid.unsigned_abs(), fd);
    if crate::process::kernel_release().starts_with("6.") {
        let taken = taken.unwrap();
        let name = std::fs::read_link(format!("/proc/self/fd/{}", taken.as_raw_fd())).unwrap();
        assert_eq!(name, PathBuf::from("/dev/zero"));
    }
    drop(end);
    thread.join().unwrap();
}

#[test]
fn sockets_tell_their_family_and_port() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    assert_eq!(local_port(listener.as_fd()), Ok(Some(port)));
    assert_eq!(domain(listener.as_fd()), Ok(libc::AF_INET));
    let (pair, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert_eq!(local_port(pair.as_fd()), Ok(None));
    assert_eq!(domain(pair.as_fd()), Ok(libc::AF_UNIX));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(domain(file.as_fd()), Err(libc::ENOTSOCK));
    hang_up(listener.as_fd());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn mounts_are_found_by_number() {
    let line = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
    assert_eq!(device_in(line, 36), Some((98, 0)));
    assert_eq!(device_in(line, 35), None);
    assert_eq!(device_in(b"", 35), None);
}
