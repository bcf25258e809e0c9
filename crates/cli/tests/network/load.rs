//! Many at once, many in a row, and much: without an error, in little memory. The benchmark does more of each.

use super::live::{Live, helper};
use super::town::Town;

const CLIENT: &str = r#"
import asyncio, base64, os, ssl, sys, threading, urllib.parse
import requests

PROXY = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
LOGIN = base64.b64encode(f"{PROXY.username}:{PROXY.password}".encode()).decode()
AT_ONCE, IN_A_ROW, MUCH = 500, 2000, 200_000_000

async def one(n):
    reader, writer = await asyncio.open_connection(PROXY.hostname, PROXY.port)
    place, path = "allowed.test", f"/crowd/{AT_ONCE}"
    login = f"Proxy-Authorization: Basic {LOGIN}\r\n"
    if n % 2:
        writer.write(f"CONNECT {place}:80 HTTP/1.1\r\nHost: {place}:80\r\n{login}\r\n".encode())
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode())
    else:
        writer.write(f"GET http://{place}{path} HTTP/1.1\r\nHost: {place}\r\n{login}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"all here\n"), answer
    writer.close()

async def at_once():
    await asyncio.gather(*(one(n) for n in range(AT_ONCE)))

asyncio.run(at_once())
print("at once", flush=True)

wrong = []
def in_a_row():
    session = requests.Session()
    session.verify = "ca.pem"
    for n in range(IN_A_ROW // 8):
        answer = session.get(("http", "https")[n % 2] + "://allowed.test/hello")
        if answer.status_code != 200: wrong.append(answer.text)

threads = [threading.Thread(target=in_a_row) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong, wrong[0]
print("in a row", flush=True)

total = 0
with requests.get(f"http://allowed.test/big/{MUCH}", stream=True) as answer:
    for part in answer.iter_content(1 << 16): total += len(part)
assert total == MUCH, total
print("much", flush=True)
sys.stdin.readline()
"#;

#[test]
fn many_at_once_many_in_a_row_and_much_in_little_memory() {
    let Some(town) = Town::new() else { return };
    town.world.file("work/client.py", CLIENT, 0o644);
    let mut live = Live::start(
        &mut town
            .nono(&["--allow-domain", "allowed.test"], "ulimit -n 4096; exec /usr/bin/python3 client.py"),
    );
    for done in ["at once", "in a row", "much"] {
        live.until(done);
    }
    let most = helper(&town).status("VmHWM");
    let kilobytes: u64 = most.trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 50 << 10, "{most}");
    live.go();
    let ran = live.end();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let events = town.network();
    let sum = |path: &str| {
        let same =
            events.iter().filter(|event| event["path"].as_str().is_some_and(|found| found.starts_with(path)));
        same.map(|event| event["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum("/hello"), 1000, "each plain request");
    assert_eq!(sum("/crowd"), 500, "each plain request, in tunnels too");
    assert!(events.iter().all(|event| event["decision"] == "allowed" && event["category"].is_null()));
}
