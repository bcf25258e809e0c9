//! The client: the same program beside every proxy, inside the sandbox and outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use crate::measure::median;

/// Load that a client generates.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) tunnel: bool,
    pub(crate) connections: usize,
    /// Total number of requests.
    pub(crate) requests: usize,
    /// Size of each response.
    pub(crate) bytes: usize,
}

impl Load {
    /// Arguments of this program for the load. `proxy`: none, its address, or `env` for the variable.
    pub(crate) fn words(self, proxy: Option<&str>, port: u16) -> Vec<String> {
        let way = if self.tunnel { "tunnel" } else { "plain" };
        let numbers =
            [self.connections, self.requests, self.bytes, usize::from(port)].map(|number| number.to_string());
        let words = ["fetch", proxy.unwrap_or("none"), way].map(str::to_owned);
        words.into_iter().chain(numbers).collect()
    }
}

/// Result of a client.
pub(crate) struct Told {
    pub(crate) seconds: f64,
    pub(crate) errors: u64,
    /// Seconds of one request, the one in the middle.
    pub(crate) median: f64,
    /// Megabytes.
    pub(crate) memory: f64,
}

impl Told {
    pub(crate) fn parse(line: &str) -> Told {
        let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
        let errors = numbers[1] as u64;
        Told { seconds: numbers[0], errors, median: numbers[2], memory: 0.0 }
    }

    /// The one in the middle by time; with all errors, and the most memory.
    pub(crate) fn middle(mut all: Vec<Told>) -> Told {
        let errors = all.iter().map(|told| told.errors).sum();
        let memory = all.iter().map(|told| told.memory).fold(0.0, f64::max);
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let middle = all.swap_remove(all.len() / 2);
        Told { errors, memory, ..middle }
    }
}

/// `fetch PROXY WAY CONNECTIONS REQUESTS BYTES PORT`: prints seconds, errors and the median request, and waits.
pub(crate) fn client(args: &[PathBuf]) {
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let number = |at: usize| words[at].parse::<usize>().expect("a number");
    let way = Way {
        proxy: match words[0].as_str() {
            "none" => None,
            "env" => Some(std::env::var("HTTP_PROXY").expect("HTTP_PROXY")),
            address => Some(address.to_owned()),
        },
        tunnel: words[1] == "tunnel",
        server: format!("127.0.0.1:{}", words[5]),
        bytes: number(4),
    };
    let (connections, requests) = (number(2), number(3));
    let begin = Instant::now();
    let results: Vec<Vec<Option<f64>>> = thread::scope(|scope| {
        let each = |_| {
            let builder = thread::Builder::new().stack_size(512 << 10);
            builder.spawn_scoped(scope, || way.fetch(requests / connections)).expect("a thread")
        };
        let threads: Vec<_> = (0..connections).map(each).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client")).collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    let times: Vec<f64> = results.iter().flatten().flatten().copied().collect();
    let errors = results.iter().flatten().filter(|time| time.is_none()).count();
    let middle = if times.is_empty() { 0.0 } else { median(times) };
    println!("{seconds} {errors} {middle}");
    // Wait until the parent has measured the processes.
    std::io::stdin().read_to_end(&mut Vec::new()).expect("the end of the input");
}

struct Way {
    proxy: Option<String>,
    tunnel: bool,
    server: String,
    bytes: usize,
}

impl Way {
    /// Sends this many requests on one connection; returns the seconds of each, `None` for a failed one.
    fn fetch(&self, requests: usize) -> Vec<Option<f64>> {
        let Some(stream) = self.connect() else { return vec![None; requests] };
        let mut reader = BufReader::with_capacity(256 << 10, stream);
        (0..requests)
            .map(|_| {
                let begin = Instant::now();
                self.request(&mut reader).map(|()| begin.elapsed().as_secs_f64())
            })
            .collect()
    }

    fn connect(&self) -> Option<TcpStream> {
        let address = self.proxy.as_deref().map_or(self.server.as_str(), |proxy| host(proxy).1);
        let stream = TcpStream::connect(address.trim_end_matches('/')).ok()?;
        stream.set_nodelay(true).ok()?;
        if self.tunnel && self.proxy.is_some() {
            let server = &self.server;
            let head = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{}\r\n", self.authorization());
            (&stream).write_all(head.as_bytes()).ok()?;
            // Nothing follows before the first request, so nothing is lost with this reader.
            answer(&mut BufReader::with_capacity(1, &stream))?;
        }
        Some(stream)
    }

    fn request(&self, reader: &mut BufReader<TcpStream>) -> Option<()> {
        let Way { server, bytes, .. } = self;
        let forward = self.proxy.is_some() && !self.tunnel;
        let (target, more) = if forward {
            (format!("http://{server}/{bytes}"), self.authorization())
        } else {
            (format!("/{bytes}"), String::new())
        };
        let head = format!("GET {target} HTTP/1.1\r\nHost: {server}\r\n{more}\r\n");
        reader.get_mut().write_all(head.as_bytes()).ok()?;
        let mut left = answer(reader)?;
        while left > 0 {
            let here = reader.fill_buf().ok()?.len().min(left);
            if here == 0 {
                return None;
            }
            reader.consume(here);
            left -= here;
        }
        Some(())
    }

    /// Credentials before the `@` of the proxy's address.
    fn authorization(&self) -> String {
        let user = self.proxy.as_deref().and_then(|proxy| host(proxy).0);
        user.map_or_else(String::new, |user| {
            format!("Proxy-Authorization: Basic {}\r\n", base64(user.as_bytes()))
        })
    }
}

fn host(proxy: &str) -> (Option<&str>, &str) {
    let rest = proxy.trim_start_matches("http://");
    rest.split_once('@').map_or((None, rest), |(user, host)| (Some(user), host))
}

/// The length of the body, if the status is 200.
fn answer(reader: &mut impl BufRead) -> Option<usize> {
    let (mut line, mut length, mut fine) = (String::new(), 0, None);
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if fine.is_none() {
            fine = Some(line.split(' ').nth(1) == Some("200"));
        }
        if line == "\r\n" {
            return fine?.then_some(length);
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
