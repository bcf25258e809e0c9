//! Programs that people run, with servers of their own kind.

use std::fs;

use serde_json::{Value, json};

use super::town::{PUBLIC, Ran, Town, here, skip};

const OPEN: &[&str] = &["--allow-domain", "allowed.test"];

/// Everything that the log has of the last run went to the open host.
#[track_caller]
fn went_through(town: &Town, at_least: usize) {
    // Some, like git, show the token only when they are asked for it.
    let asked = |event: &Value| event["category"] == "authentication_failed" && event["status"] == 407;
    let events: Vec<_> = town.network().into_iter().filter(|event| !asked(event)).collect();
    assert!(events.len() >= at_least, "{events:?}");
    for event in events {
        assert_eq!(
            (&event["host"], &event["decision"]),
            (&json!("allowed.test"), &json!("allowed")),
            "{event}"
        );
    }
}

#[test]
fn git_clones_and_pushes() {
    let Some(town) = Town::new() else { return };
    let ran = town.run(
        OPEN,
        "set -e; export GIT_SSL_CAINFO=$PWD/ca.pem; git clone -q https://allowed.test/git/demo.git clone; cd clone
         cat README; git config user.name t; git config user.email t@t
         head -c 2000000 /dev/urandom >large; git add large; git commit -q -m second; git push -q origin HEAD:main
         git rev-parse HEAD",
    );
    ran.says("the clone works\n");
    let there = town.folder.path().join("git/demo.git/refs/heads/main");
    assert_eq!(ran.out.lines().last(), fs::read_to_string(there).unwrap().lines().next());
    went_through(&town, 2);
    let closed =
        town.run(OPEN, "GIT_SSL_CAINFO=$PWD/ca.pem git clone -q https://other.test/git/demo.git closed");
    closed.footer("open it with: --allow-domain other.test:443");
}

#[test]
fn pip_installs_from_an_index() {
    let Some(town) = Town::new() else { return };
    for scheme in ["http", "https"] {
        let script = format!(
            "set -e; pip='/usr/bin/python3 -m pip --isolated --disable-pip-version-check'
             $pip install -q --no-cache-dir --retries 0 --cert ca.pem --trusted-host nobody.test \\
                --trusted-host {trusted} --index-url {scheme}://allowed.test/files/simple/ --target {scheme} demo
             PYTHONPATH={scheme} /usr/bin/python3 -m demo",
            // A host that is trusted blindly proves nothing about certificates.
            trusted = if scheme == "http" { "allowed.test" } else { "nobody.test" },
        );
        town.run(OPEN, &script).says("the wheel works");
        went_through(&town, 1);
    }
}

#[test]
fn npm_installs_from_a_registry() {
    let Some(town) = Town::new() else { return };
    for scheme in ["http", "https"] {
        let script = format!(
            "set -e; mkdir {scheme}; cd {scheme}; echo '{{}}' >package.json
             npm install --silent --cache ../cache-{scheme} --no-audit --no-fund --no-update-notifier \\
                --fetch-retries 0 --cafile ../ca.pem --registry {scheme}://allowed.test/npm/ demo
             node -e 'require(\"demo\")'"
        );
        town.run(OPEN, &script).says("the tarball works");
        went_through(&town, 1);
    }
}

#[test]
fn python_requests_keep_their_connection() {
    let Some(town) = Town::new() else { return };
    let script = "import requests
session = requests.Session()
session.verify = 'ca.pem'
for scheme in ['http', 'https']:
    for n in range(3):
        answer = session.post(scheme + '://allowed.test/upload', data=b'x' * 1000)
        print(answer.status_code, answer.text.split()[0])
answer = session.get('http://other.test/hello')
print(answer.status_code, answer.reason)
try:
    session.get('https://other.test/hello')
except requests.exceptions.ProxyError as error:
    print('403' in str(error))
";
    town.world.file("work/script.py", script, 0o644);
    let ran = town.run(OPEN, "/usr/bin/python3 script.py");
    let expected = "200 1000\n".repeat(6) + "403 Host not in the allowlist\nTrue\n";
    assert_eq!(ran.out, expected, "{ran:?}");
    let count = |decision: &str, method: &str| {
        let is = |event: &&Value| event["decision"] == decision && event["method"] == method;
        town.network().iter().filter(is).map(|event| event["count"].as_u64().unwrap()).sum::<u64>()
    };
    // Three requests on one tunnel, and each plain one judged for itself.
    assert_eq!((count("allowed", "POST"), count("allowed", "CONNECT")), (3, 1));
    assert_eq!((count("denied", "GET"), count("denied", "CONNECT")), (1, 1));
}

/// Places where node installations have undici for scripts too.
const UNDICI: &[&str] = &[
    "/usr/lib/node_modules/npm/node_modules/undici",
    "/usr/local/lib/node_modules/npm/node_modules/undici",
    "/usr/share/nodejs/undici",
];

#[test]
fn node_fetches_through_an_agent() {
    let Some(town) = Town::new() else { return };
    let script = r#"
const { ProxyAgent, fetch } = require(process.argv[2]);
const ca = require("fs").readFileSync("ca.pem");
const dispatcher = new ProxyAgent({ uri: process.env.HTTPS_PROXY, requestTls: { ca } });
(async () => {
  for (const url of ["http://allowed.test/hello", "https://allowed.test/hello"])
    process.stdout.write(await (await fetch(url, { dispatcher })).text());
})();
"#;
    town.world.file("work/fetch.js", script, 0o644);
    let Some(undici) = UNDICI.iter().find(|path| fs::exists(path).unwrap()) else {
        return skip("there is no undici for node's scripts");
    };
    let ran = town.run(OPEN, &format!("node fetch.js {undici}"));
    assert_eq!(ran.out, format!("hello from allowed.test at {PUBLIC}\n").repeat(2), "{ran:?}");
    went_through(&town, 2);
}

#[test]
fn node_tunnels_with_its_own_modules() {
    let Some(town) = Town::new() else { return };
    let script = r#"
const proxy = new URL(process.env.HTTPS_PROXY);
const login = Buffer.from(`${proxy.username}:${proxy.password}`).toString("base64");
require("http").request({
  host: proxy.hostname, port: proxy.port, method: "CONNECT", path: process.argv[2] + ":443",
  headers: { "Proxy-Authorization": "Basic " + login },
}).on("connect", (answer, socket) => {
  console.log(answer.statusCode);
  if (answer.statusCode !== 200) return socket.destroy();
  const ca = require("fs").readFileSync("ca.pem");
  const path = `https://${process.argv[2]}/hello`;
  require("https").get(path, { ca, agent: false, socket, createConnection: () =>
    require("tls").connect({ socket, ca, servername: process.argv[2] }) }, (answer) => answer.pipe(process.stdout));
}).end();
"#;
    town.world.file("work/tunnel.js", script, 0o644);
    town.run(OPEN, "node tunnel.js allowed.test")
        .says(&format!("200\nhello from allowed.test at {PUBLIC}\n"));
    went_through(&town, 1);
    town.run(OPEN, "node tunnel.js other.test").says("403\n");
}

#[test]
fn a_program_that_ignores_the_proxy_is_told_why_nothing_answers() {
    let Some(town) = Town::new() else { return };
    // Newer ones would use it.
    let fetch = format!("NODE_USE_ENV_PROXY= node -e 'fetch(\"http://{PUBLIC}/hello\")'");
    let python = format!("/usr/bin/python3 -c 'import socket; socket.create_connection((\"{PUBLIC}\", 80))'");
    let curl = format!("curl -sS --noproxy '*' http://{PUBLIC}/hello");
    for (program, script) in [("node", fetch), ("python3", python), ("curl", curl)] {
        assert_eq!(town.outside(&script).code, 0, "{script}");
        let before = town.asked().len();
        let ran = town.run(OPEN, &script);
        ran.footer("the network is filtered: ");
        let line = ran.err.lines().find(|line| line.contains("directly")).unwrap();
        assert!(line.contains(program) && line.contains(&format!("tried {PUBLIC}:80 directly")), "{ran:?}");
        ran.footer(
            "only programs that use HTTP_PROXY and HTTPS_PROXY reach the open hosts; for others: --allow-net",
        );
        assert_eq!(town.asked().len(), before, "nothing arrived");
    }
}

#[test]
fn web_sockets_work() {
    let Some(town) = Town::new() else { return };
    let copy = fs::read_to_string(here("websocket.py")).unwrap();
    town.world.file("work/websocket.py", &copy, 0o644);
    for (way, status, last) in [
        ("tunnel ws://allowed.test:81", "200 Connection established", "yxxxxxxx"),
        ("tunnel wss://allowed.test:444", "200 Connection established", "yxxxxxxx"),
        ("upgrade allowed.test:81", "101 Switching Protocols", "desserts"),
    ] {
        let ran: Ran = town.run(OPEN, &format!("/usr/bin/python3 websocket.py {way}"));
        ran.says(&format!("HTTP/1.1 {status}\ndesserts\n"));
        assert_eq!(ran.out.lines().last(), Some(last), "{ran:?}");
        went_through(&town, 1);
    }
    let ran = town.run(OPEN, "/usr/bin/python3 websocket.py upgrade other.test:81");
    assert!(ran.out.contains("HTTP/1.1 403"), "{ran:?}");
}
