//! The network filter: its real process, driven by the library as a session drives it, and the flags that lead to it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod bare;
mod credentials;
mod curl;
mod ends;
mod flags;
mod kit;
mod live;
mod load;
mod names;
mod process;
mod programs;
mod town;
mod upstream;

use crate::world;

use std::os::unix::fs::PermissionsExt;

use nono::network::{Listen, Network, NetworkSettings, NetworkStart};

use kit::{Server, exchange, networking, policy, serving, start, value, variables};

#[test]
fn an_allowed_host_is_reached_and_another_is_not() {
    let server = Server::start();
    let begun = serving(&[server.0.to_string()]);
    let get = |host: &str| {
        let authorization = begun.authorization();
        format!("GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\n{authorization}Connection: close\r\n\r\n")
    };
    let answer = exchange(begun.address, &get(&server.0.to_string()));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("GET /x HTTP/1.1"), "{answer}");
    assert!(!answer.to_lowercase().contains("proxy-authorization"), "{answer}");
    for _ in 0..2 {
        let answer = exchange(begun.address, &get("elsewhere.example.org"));
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("not in the allowlist"), "{answer}");
    }
    let report = begun.network.finish();
    assert_eq!((report.allowed, report.refused, &report.lost), (1, 2, &None));
    assert_eq!(report.missing(), None);
    let [refused] = &report.hosts[..] else { panic!("{report:?}") };
    assert_eq!((refused.host.as_str(), refused.port, refused.count), ("elsewhere.example.org", 80, 2));
    let events = begun.told.events.lock().unwrap();
    assert_eq!(events.iter().map(|event| event.allowed).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn no_client_is_served_before_it_is_wanted() {
    let begun = start(&networking(&[], &NetworkSettings::default()), &[], &Vec::new()).unwrap();
    assert!(begun.network.helper_pid().is_some());
    let report = begun.network.finish();
    assert_eq!((report.allowed, report.refused), (0, 0));
}

#[test]
fn the_socket_may_come_from_somewhere_else() {
    let (listener, folder) = (nono::network::bind().unwrap(), tempfile::tempdir().unwrap());
    let address = listener.local_addr().unwrap();
    let policy = policy(&[]);
    let begin = NetworkStart {
        policy: &policy,
        env: &[],
        cwd: std::path::Path::new("/"),
        folder: folder.path(),
        state_dir: None,
        listen: Listen::Inside { port: address.port() },
    };
    let network =
        Network::start(&networking(&[], &NetworkSettings::default()), begin, std::sync::Arc::new(()))
            .unwrap();
    network.serve(listener.into()).unwrap();
    assert!(network.serve_here().is_err(), "it has its socket");
    let answer = exchange(
        address,
        "CONNECT a.example.org:443 HTTP/1.1\r\nHost: a.example.org:443\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(network.finish().refused, 1);
}

/// A service on loopback, described as a user would.
fn local(server: &Server) -> NetworkSettings {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    let text = format!(
        "[credentials.local]\nhost = \"127.0.0.1\"\nport = {}\nscheme = \"http\"\nenv = \"LOCAL_TOKEN\"\n\
         base_url_env = \"LOCAL_URL\"\nbase_path = \"/api\"\n",
        server.0.port()
    );
    std::fs::write(&file, text).unwrap();
    NetworkSettings::load(&file).unwrap()
}

const SECRET: &str = "the-real-one-0123456789";

#[test]
fn the_command_has_a_placeholder_and_the_server_gets_the_secret() {
    let server = Server::start();
    let networking = networking(&["local"], &local(&server));
    let caller = variables(&[
        ("LOCAL_TOKEN", SECRET),
        ("COPY", SECRET),
        ("URL", &format!("https://me:{SECRET}@host/")),
        ("FINE", "1"),
    ]);
    let begun = start(&networking, &[server.0.to_string()], &caller).unwrap();
    begun.network.serve_here().unwrap();
    let env = begun.env(&caller);
    for (name, value) in &env {
        assert!(!value.to_str().unwrap().contains(SECRET), "{name:?}");
    }
    assert_eq!((value(&env, "FINE"), value(&env, "COPY")), (Some("1".to_owned()), None));
    let placeholder = value(&env, "LOCAL_TOKEN").unwrap();
    assert!(placeholder.strip_prefix("nono-dummy-").is_some_and(|hex| hex.len() == 32), "{placeholder}");
    let url = value(&env, "LOCAL_URL").unwrap();
    assert_eq!(url, format!("http://{}/local/api", begun.address));
    let request = format!(
        "GET /local/api/x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {placeholder}\r\nConnection: close\r\n\r\n",
        begun.address
    );
    let answer = exchange(begun.address, &request);
    assert!(server.got().contains(&format!("Authorization: Bearer {SECRET}\r\n")), "{}", server.got());
    // It echoes what it got, and the secret does not come back.
    assert!(answer.contains("GET /api/x HTTP/1.1") && !answer.contains(SECRET), "{answer}");
    let pid = begun.network.helper_pid().unwrap();
    for what in ["cmdline", "environ"] {
        let text = std::fs::read(format!("/proc/{pid}/{what}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(SECRET), "{what}");
    }
    let debugged = format!("{:?} {networking:?}", begun.network);
    assert!(!debugged.contains(SECRET), "{debugged}");
    let report = begun.network.finish();
    assert_eq!(report.allowed, 1, "{report:?}");
    let events = begun.told.events.lock().unwrap();
    assert_eq!(events[0].credential.as_deref(), Some("local"));
    assert!(!format!("{events:?}").contains(SECRET));
}

#[test]
fn where_it_speaks_for_a_server_the_command_can_believe_it() {
    let caller = variables(&[("OPENAI_API_KEY", SECRET)]);
    let begun =
        start(&networking(&["openai"], &NetworkSettings::default()), &["api.openai.com:443".into()], &caller);
    let begun = begun.unwrap();
    let bundle = begun.network.bundle().unwrap().to_owned();
    assert!(bundle.starts_with(begun.folder.path()));
    assert_eq!(bundle.metadata().unwrap().permissions().mode() & 0o777, 0o400);
    let text = std::fs::read_to_string(&bundle).unwrap();
    assert!(text.matches("BEGIN CERTIFICATE").count() > 10, "the system's are in it");
    let env = begun.env(&caller);
    for name in
        ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"]
    {
        assert_eq!(value(&env, name).as_deref(), bundle.to_str(), "{name}");
    }
    let url = value(&env, "OPENAI_BASE_URL").unwrap();
    assert_eq!(url, format!("http://{}/openai/v1", begun.address));
}

#[test]
fn what_cannot_be_had_is_known_before_the_command_runs() {
    let missing = start(&networking(&["openai"], &NetworkSettings::default()), &[], &Vec::new());
    let said = missing.err().unwrap().to_string();
    assert!(said.contains("OPENAI_API_KEY is not set"), "{said}");
    for helper in ["/nowhere", "/bin/false", "/bin/true"] {
        let mut wrong = networking(&[], &NetworkSettings::default());
        wrong.helper = vec![helper.into()];
        assert!(start(&wrong, &[], &Vec::new()).is_err(), "{helper}");
    }
}
