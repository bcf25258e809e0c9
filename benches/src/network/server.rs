//! An HTTP server that sends as many bytes as the path says: `/1000`.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

pub(crate) struct Server {
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::Builder::new().stack_size(128 << 10).spawn(move || serve(&stream)).expect("a thread");
            }
        });
        Server { port }
    }
}

/// Serves a client until it ends or breaks off.
fn serve(stream: &TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    let block = vec![b'x'; 256 << 10];
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut bytes: usize = line.split(' ').nth(1)?.rsplit('/').next()?.parse().ok()?;
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        let first = bytes.min(block.len());
        (&*stream).write_all(&[head.as_bytes(), &block[..first]].concat()).ok()?;
        bytes -= first;
        while bytes > 0 {
            let part = bytes.min(block.len());
            (&*stream).write_all(&block[..part]).ok()?;
            bytes -= part;
        }
    }
}

/// Port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Waits until a server accepts connections on the port.
pub(crate) fn wait_for(port: u16) {
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        thread::yield_now();
    }
}
