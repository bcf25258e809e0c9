//! Many sockets, one after the other, served by one proxy. Alone in its process: it counts what the process has.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where it fails")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use nono_proxy::{Config, Proxy};

/// Descriptors and pages of memory.
fn held() -> (usize, u64) {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    (descriptors, pages.split(' ').nth(1).unwrap().parse().unwrap())
}

#[test]
fn ten_thousand_of_them_leave_nothing() {
    let proxy = Proxy::start(Config::default(), ([127, 0, 0, 1], 0).into()).unwrap();
    let once = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let guard = proxy.serve_also(listener.into()).unwrap();
        let mut client = TcpStream::connect(there).unwrap();
        client.write_all(b"CONNECT closed.test:443 HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 403");
        drop(guard);
        assert_eq!(proxy.drain().0.len(), 1);
    };
    // What is allocated once is there after a few.
    (0..500).for_each(|_| once());
    let (descriptors, pages) = held();
    (0..10_000).for_each(|_| once());
    let (descriptors_after, pages_after) = held();
    assert_eq!(descriptors_after, descriptors);
    // A leak of 500 bytes each would be 1,200 pages.
    assert!(pages_after < pages + 800, "{pages} {pages_after}");
}
