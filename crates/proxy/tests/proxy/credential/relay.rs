//! Another proxy: it grants every tunnel, to one server, and keeps what the client sends through it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) struct Relay {
    pub(crate) port: u16,
    pub(crate) carried: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    pub(crate) fn start(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let carried = Arc::new(Mutex::new(Vec::new()));
        let shared = carried.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let carried = shared.clone();
                thread::spawn(move || serve(client.unwrap(), server, &carried));
            }
        });
        Relay { port, carried }
    }
}

fn serve(mut client: TcpStream, server: u16, carried: &Mutex<Vec<u8>>) {
    let mut byte = [0];
    while !carried.lock().unwrap().ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        carried.lock().unwrap().push(byte[0]);
    }
    let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut back, &mut to_client));
    let mut piece = [0; 4096];
    // A side that went away is the end.
    while let Ok(length @ 1..) = client.read(&mut piece) {
        carried.lock().unwrap().extend_from_slice(&piece[..length]);
        if server.write_all(&piece[..length]).is_err() {
            return;
        }
    }
}
