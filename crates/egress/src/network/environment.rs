//! Environment of the command: the proxy's variables added, secrets removed.
//!
//! `NO_PROXY` keeps a program's own servers on loopback out of the proxy. A granted `localhost` or loopback address means
//! one on *this machine*, which only the proxy reaches: exactly those names are left out of `NO_PROXY` then, so requests
//! to servers that the command itself started under such a name go to the machine's instead.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use nono_policy::host_rule::{Host, HostRule, Hosts};
use nono_proxy::Secret;

use super::credential::Credential;

type Variables = Vec<(OsString, OsString)>;

/// Minimum length of a secret that is searched for inside values: shorter ones occur by chance.
const TELLING: usize = 8;

/// Variables that name the proxy of a session, and the certificates to trust where it terminates TLS.
pub fn environment(port: u16, token: &Secret, hosts: &[HostRule], bundle: Option<&Path>) -> Variables {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let direct = no_proxy(&["localhost", "127.0.0.1", "::1"], hosts);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let env = of_proxy(&names, address, token, &direct, bundle);
    env.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Variables that send programs to a proxy: its address under these names, the hosts to reach directly, and the
/// certificates to trust.
pub(crate) fn of_proxy(
    names: &[&str],
    address: SocketAddr,
    token: &Secret,
    direct: &str,
    bundle: Option<&Path>,
) -> Vec<(String, OsString)> {
    let proxy = format!("http://nono:{}@{address}", token.reveal());
    let mut env: Vec<(String, OsString)> =
        names.iter().map(|name| ((*name).to_owned(), OsString::from(&proxy))).collect();
    for (name, value) in [
        ("NO_PROXY", direct),
        ("no_proxy", direct),
        ("NONO_PROXY_TOKEN", token.reveal()),
        ("NODE_USE_ENV_PROXY", "1"),
    ] {
        env.push((name.to_owned(), value.into()));
    }
    let trust =
        ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"];
    env.extend(bundle.into_iter().flat_map(|file| trust.map(|name| (name.to_owned(), file.into()))));
    env
}

/// Value of `NO_PROXY`: these names of this machine, but for those that are opened through the proxy.
pub(crate) fn no_proxy(names: &[&str], hosts: &[HostRule]) -> String {
    let opened = |name: &str| {
        hosts.iter().any(|rule| match &rule.hosts {
            Hosts::One(Host::Name(host)) | Hosts::Below(host) => host.as_str() == name,
            Hosts::One(Host::Address(address)) => name.parse() == Ok(*address),
        })
    };
    let direct: Vec<_> = names.iter().copied().filter(|name| !opened(name)).collect();
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
        let direct = |texts: &[&str]| no_proxy(&["localhost", "127.0.0.1", "::1"], &rules(texts));
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
