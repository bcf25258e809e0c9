//! Environment of the command: the proxy's variables added, secrets removed.
//!
//! `NO_PROXY` keeps a program's own servers on loopback out of the proxy. A granted `localhost` or loopback address means
//! one on *this machine*, which only the proxy reaches: exactly those names are left out of `NO_PROXY` then, so requests
//! to servers that the command itself started under such a name go to the machine's instead.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use nono_policy::host_rule::{Host, HostRule, Hosts};
use nono_proxy::Secret;

use super::credential::Credential;

type Variables = Vec<(OsString, OsString)>;

/// Minimum length of a secret that is searched for inside values: shorter ones occur by chance.
const TELLING: usize = 8;

/// Variables that name the proxy, and the certificates to trust where it terminates TLS.
pub fn environment(port: u16, token: &Secret, hosts: &[HostRule], bundle: Option<&Path>) -> Variables {
    let proxy = format!("http://nono:{}@127.0.0.1:{port}", token.reveal());
    let direct = no_proxy(hosts);
    let mut env: Variables = Vec::new();
    let mut set = |name: &str, value: &str| env.push((name.into(), value.into()));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        set(name, &proxy);
    }
    set("NO_PROXY", &direct);
    set("no_proxy", &direct);
    set("NONO_PROXY_TOKEN", token.reveal());
    set("NODE_USE_ENV_PROXY", "1");
    let bundle = bundle.into_iter().flat_map(|file| {
        ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"]
            .map(|name| (name.into(), file.into()))
    });
    env.extend(bundle);
    env
}

fn no_proxy(hosts: &[HostRule]) -> String {
    let localhost = |rule: &HostRule| match &rule.hosts {
        Hosts::One(Host::Name(name)) | Hosts::Below(name) => name.as_str() == "localhost",
        Hosts::One(Host::Address(_)) => false,
    };
    let address = |address: IpAddr| move |rule: &HostRule| rule.hosts == Hosts::One(Host::Address(address));
    let all = [
        ("localhost", hosts.iter().any(localhost)),
        ("127.0.0.1", hosts.iter().any(address(Ipv4Addr::LOCALHOST.into()))),
        ("::1", hosts.iter().any(address(Ipv6Addr::LOCALHOST.into()))),
    ];
    let direct: Vec<_> = all.into_iter().filter(|(_, granted)| !granted).map(|(name, _)| name).collect();
    direct.join(",")
}

/// Variables of a credential's programs: the placeholder, and the proxy as the base URL.
pub(super) fn placed(credential: &Credential, placeholder: &str, port: u16) -> Variables {
    let service = &credential.service;
    let mut env: Variables = service.variables.iter().map(|name| (name.into(), placeholder.into())).collect();
    if let Some((name, path)) = &service.base_url {
        env.push((name.into(), format!("http://127.0.0.1:{port}/{}{path}", service.name).into()));
    }
    env
}

/// Remove variables that may hold a secret, by name and by value, and those that are set anew.
pub(super) fn strip(env: &mut Variables, names: &[OsString], secrets: &[Secret]) {
    let holds = |value: &OsString| {
        let value = value.as_encoded_bytes();
        secrets.iter().map(|secret| secret.reveal().as_bytes()).any(|secret| {
            value == secret
                || secret.len() >= TELLING && value.windows(secret.len()).any(|part| part == secret)
        })
    };
    env.retain(|(name, value)| !names.contains(name) && !holds(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<HostRule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn value<'a>(env: &'a Variables, name: &str) -> Option<&'a str> {
        env.iter().find(|(given, _)| given == name).and_then(|(_, value)| value.to_str())
    }

    #[test]
    fn programs_find_the_proxy() {
        let env = environment(19080, &Secret::new("t0"), &[], None);
        for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY"] {
            assert_eq!(value(&env, name), Some("http://nono:t0@127.0.0.1:19080"));
        }
        assert_eq!(value(&env, "NO_PROXY"), Some("localhost,127.0.0.1,::1"));
        assert_eq!(value(&env, "NONO_PROXY_TOKEN"), Some("t0"));
        assert_eq!(value(&env, "SSL_CERT_FILE"), None);
        let env = environment(1, &Secret::new("t"), &[], Some(Path::new("/s/ca.pem")));
        assert_eq!(value(&env, "GIT_SSL_CAINFO"), Some("/s/ca.pem"));
    }

    #[test]
    fn granted_loopback_hosts_go_through_the_proxy() {
        let direct = |texts: &[&str]| no_proxy(&rules(texts));
        assert_eq!(direct(&["localhost:80"]), "127.0.0.1,::1");
        assert_eq!(direct(&["*.localhost"]), "127.0.0.1,::1");
        assert_eq!(direct(&["127.0.0.1:80", "[::1]:80"]), "localhost");
        assert_eq!(direct(&["127.0.0.2", "example.org"]), "localhost,127.0.0.1,::1");
    }

    #[test]
    fn no_variable_keeps_a_secret() {
        let secrets = [Secret::new("sk-0123456789"), Secret::new("abc")];
        let mut env: Variables = [
            ("KEY", "other"),
            ("URL", "https://me:sk-0123456789@host"),
            ("COPY", "abc"),
            ("FINE", "abcd"),
            ("PATH", "/bin"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        strip(&mut env, &["KEY".into()], &secrets);
        let left: Vec<_> = env.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(left, ["FINE", "PATH"]);
    }
}
