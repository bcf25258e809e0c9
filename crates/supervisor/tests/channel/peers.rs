//! Peer checks: the request socket is for processes inside, the control socket for those outside.

use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use nono_supervisor::channel::{Bounds, CONTROL_SOCKET, REQUEST_SOCKET};
use serde_json::json;

use nono_testkit::user::STRANGER;

use crate::kit::{Init, Place, asker, new_socket, python};

const ELSEWHERE: &str = "stranger: this channel is only for processes inside the sandbox";

#[test]
fn a_process_outside_gets_nothing_from_the_request_channel() {
    let place = Place::new(Init::Other, Bounds::default());
    let (code, out, err) = python(&place.path(REQUEST_SOCKET), |command| {
        command.arg(place.path("granted"));
    });
    assert!(code == Some(1) && out.is_empty() && err.ends_with(ELSEWHERE), "{err}");
    let client = place.connect_self(REQUEST_SOCKET);
    client.send(&place.wanted("1", "granted"));
    client.is_refused("stranger");
    assert!(place.service.asked.lock().unwrap().is_empty());
    assert_eq!(place.threads().request_counts().strangers, 2);
}

/// Also when the modes of directory and socket would let them in.
#[test]
fn another_user_gets_nothing() {
    if !rustix::process::geteuid().is_root() {
        return nono_testkit::skip("only root can be another user");
    }
    let place = Place::new(Init::Us, Bounds::default());
    let socket = place.path(REQUEST_SOCKET);
    let ask = || {
        python(&socket, |command| {
            command.arg(place.path("granted")).uid(STRANGER).gid(STRANGER);
        })
    };
    let (code, _, err) = ask();
    assert!(code == Some(1) && err.contains("PermissionError"), "{err}");
    let open =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open(place.dir.path(), 0o755);
    open(&socket, 0o666);
    let (code, out, err) = ask();
    let words = "stranger: this channel belongs to another user";
    assert!(code == Some(1) && out.is_empty() && err.ends_with(words), "{err}");
    assert!(place.service.asked.lock().unwrap().is_empty());
}

/// All descendants are inside, also those that init adopted.
#[test]
fn children_of_children_are_inside() {
    let place = Place::new(Init::Us, Bounds::default());
    let socket = place.path(REQUEST_SOCKET);
    let fork = "import os\nfor _ in range(5):\n    pid = os.fork()\n    if pid: os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    let script =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/request.py"));
    let output = std::process::Command::new("python3")
        .arg("-c")
        .arg(format!("{fork}{}", script.unwrap()))
        .arg(place.path("granted"))
        .env("NONO_REQUEST_SOCK", &socket)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "content", "{output:?}");
}

#[test]
fn what_is_inside_does_not_get_to_the_control_channel() {
    let place = Place::new(Init::Us, Bounds::default());
    let client = place.connect_self(CONTROL_SOCKET);
    client.send(&json!({"version": 1, "type": "stop", "id": "1"}));
    client.is_refused("stranger");
}

#[test]
fn connections_on_behalf_go_to_the_request_channel_alone() {
    let place = Place::new(Init::Other, Bounds::default());
    let connector = place.connector();
    let meta = |name: &str| place.path(name).symlink_metadata().unwrap();
    let request = meta(REQUEST_SOCKET);
    assert!(connector.is_request_socket(request.dev(), request.ino()));
    let control = meta(CONTROL_SOCKET);
    assert!(!connector.is_request_socket(control.dev(), control.ino()));
    let connected = new_socket();
    connector.connect_for(asker(), connected.as_fd()).unwrap();
    let again = connector.connect_for(asker(), connected.as_fd()).unwrap_err();
    assert_eq!(again.raw_os_error(), Some(rustix::io::Errno::ISCONN.raw_os_error()));
    let stream = std::os::unix::net::UnixDatagram::unbound().unwrap();
    assert!(connector.connect_for(asker(), stream.as_fd()).is_err(), "of another type");
    assert_eq!(place.ask("1", "granted")["granted"], true);
}

/// Other connections in the same queue are not taken for the asker's, nor the asker's for another.
#[test]
fn a_crowd_is_told_apart() {
    let place = Place::new(
        Init::Other,
        Bounds { per_second: 10_000, burst: 10_000, connections: 1000, ..Bounds::default() },
    );
    let socket = place.path(REQUEST_SOCKET);
    std::thread::scope(|scope| {
        let strangers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    python(&socket, |command| {
                        command.arg(place.path("granted"));
                    })
                })
            })
            .collect();
        let mut number = 0;
        while !strangers.iter().all(std::thread::ScopedJoinHandle::is_finished) || number < 50 {
            assert_eq!(place.ask(&number.to_string(), "granted")["granted"], true);
            number += 1;
        }
        for stranger in strangers {
            let (code, out, err) = stranger.join().unwrap();
            assert!(code == Some(1) && out.is_empty() && err.ends_with(ELSEWHERE), "{err}");
        }
        let asked = place.service.asked.lock().unwrap();
        assert!(asked.iter().all(|(who, ..)| *who == asker()));
    });
}
