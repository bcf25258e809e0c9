use super::*;

fn route(prefix: &str, upstream: &str) -> RouteConfig {
    RouteConfig {
        prefix: prefix.to_owned(),
        upstream: upstream.to_owned(),
        credential_key: None,
        inject_mode: Injection::Header,
        inject_header: "Authorization".to_owned(),
        credential_format: None,
        path_pattern: None,
        path_replacement: None,
        query_param_name: None,
        env_var: None,
        endpoint_rules: Vec::new(),
        tls_ca: None,
        tls_client_cert: None,
        tls_client_key: None,
    }
}

fn around(env: &[(&str, &str)]) -> Surroundings {
    let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
    Surroundings { env, cwd: "/".into() }
}

fn config(hosts: &[&str], routes: Vec<RouteConfig>) -> ProxyConfig {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    ProxyConfig { routes, ..ProxyConfig::new(&hosts, false, "127.0.0.1", 16).unwrap() }
}

fn value(env: &[(String, OsString)], name: &str) -> Option<String> {
    env.iter().find(|(given, _)| given == name).map(|(_, value)| value.to_str().unwrap().to_owned())
}

#[test]
fn a_config_that_cannot_be_meant_is_refused() {
    let new = |hosts: &[&str], all, bind, most| {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        ProxyConfig::new(&hosts, all, bind, most).map(drop).map_err(|error| error.to_string())
    };
    assert!(new(&[], false, "localhost", 1).unwrap_err().contains("bind_addr"));
    assert!(new(&["a.test"], true, "127.0.0.1", 1).unwrap_err().contains("allow_all_hosts"));
    assert!(new(&["*"], false, "127.0.0.1", 1).is_err());
    assert!(new(&[], false, "127.0.0.1", 0).is_err());
    assert!(new(&["*.a.test", "b.test:443", "::1"], false, "::1", 1).is_ok());
}

#[test]
fn programs_find_the_proxy_and_its_routes() {
    let mut keyed = route("/api/", "http://127.0.0.1:1/v1");
    keyed.credential_key = Some("my_key".to_owned());
    let mut missing = route("gone", "http://127.0.0.1:1");
    missing.credential_key = Some("env://NOT_SET".to_owned());
    missing.env_var = Some("GONE_KEY".to_owned());
    let config = config(&["a.test"], vec![keyed, missing, route("odd", "not a url")]);
    let proxy = RunningProxy::start(&config, &around(&[("MY_KEY", "sk-0123456789")])).unwrap();
    let env = proxy.env_vars();
    let token = value(&env, "NONO_PROXY_TOKEN").unwrap();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let port = proxy.handle().port();
    assert_eq!(value(&env, "https_proxy"), Some(format!("http://nono:{token}@127.0.0.1:{port}")));
    assert_eq!(value(&env, "NO_PROXY").as_deref(), Some("localhost,127.0.0.1"));
    assert_eq!(env.len(), 8);
    let env = proxy.credential_env_vars();
    assert_eq!(value(&env, "API_BASE_URL"), Some(format!("http://127.0.0.1:{port}/api")));
    assert_eq!(value(&env, "MY_KEY"), Some(token));
    assert_eq!(value(&env, "GONE_KEY"), None);
    assert_eq!(env.len(), 4);
    let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let env = proxy.sandbox_env(&[pair("HTTP_PROXY", "x"), pair("A", "1")]).unwrap();
    assert_eq!(env[0], pair("A", "1"));
    assert!(env.is_sorted() && !env.contains(&pair("HTTP_PROXY", "x")));
    assert!(proxy.sandbox_env(&[pair("LD_PRELOAD", "x")]).is_err());
    let shown = format!("{proxy:?} {config:?}");
    assert!(!shown.contains("sk-0123456789"), "{shown}");
}

#[test]
fn hosts_that_were_opened_by_name_go_through_the_proxy() {
    let direct = |hosts: &[&str]| {
        let proxy = RunningProxy::start(&config(hosts, Vec::new()), &around(&[])).unwrap();
        value(&proxy.env_vars(), "no_proxy").unwrap()
    };
    assert_eq!(direct(&["localhost"]), "127.0.0.1");
    assert_eq!(direct(&["localhost", "127.0.0.1:80"]), "");
}

#[test]
fn secrets_are_fetched_where_the_key_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "from-a-file\n").unwrap();
    let around =
        around(&[("NAME", "from-env"), ("CAPITALS", "x-y"), ("BAD", "a\u{7f}b"), ("PATH", "/nowhere")]);
    let fetch = |key: &str| secret::fetch(key, &around);
    assert_eq!(fetch("NAME").unwrap(), "from-env");
    assert_eq!(fetch("capitals").unwrap(), "x-y");
    assert_eq!(fetch("env://NAME").unwrap(), "from-env");
    assert_eq!(fetch(&format!("file://{}", path.display())).unwrap(), "from-a-file");
    for key in
        ["NOTHING", "env://NOTHING", "file:///nowhere/x", "file://x", "file:///", "op://a/b", "keyring://a/b"]
    {
        assert!(!fetch(key).unwrap_err().to_string().is_empty(), "{key}");
    }
    assert!(!fetch("BAD").unwrap_err().to_string().contains('a'.to_string().repeat(2).as_str()));
}

#[test]
fn what_is_wrong_with_a_route_is_said_at_the_start() {
    let start = |change: fn(&mut RouteConfig)| {
        let mut wrong = route("api", "http://127.0.0.1:1");
        wrong.credential_key = Some("KEY".to_owned());
        change(&mut wrong);
        let around = around(&[("KEY", "0123456789")]);
        RunningProxy::start(&config(&[], vec![wrong]), &around).map(drop).map_err(|error| error.to_string())
    };
    assert!(start(|_| {}).is_ok());
    for change in [
        (|route| {
            route.endpoint_rules = vec![EndpointRule { method: "GET".to_owned(), path: "/[".to_owned() }];
        }) as fn(&mut RouteConfig),
        |route| {
            route.endpoint_rules = vec![EndpointRule { method: "GET".to_owned(), path: "/{a".to_owned() }];
        },
        |route| route.inject_mode = Injection::UrlPath,
        |route| route.inject_mode = Injection::QueryParam,
        |route| route.credential_format = Some("Bearer".to_owned()),
        |route| route.inject_header = "Host".to_owned(),
        |route| route.prefix = "a/b".to_owned(),
        |route| route.tls_client_cert = Some("/x".into()),
        |route| route.tls_ca = Some("/nowhere/ca.pem".into()),
    ] {
        let said = start(change).unwrap_err();
        assert!(!said.contains("0123456789"), "{said}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let mut config = config(&[], vec![route("api", "https://127.0.0.1:1")]);
    config.intercept_ca_dir = Some("/nowhere/at/all".into());
    assert!(matches!(RunningProxy::start(&config, &around(&[])), Err(ProxyError::Bundle { .. })));
}
