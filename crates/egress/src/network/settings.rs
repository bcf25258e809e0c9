//! Network settings in `config.toml` in nono's state folder.
//!
//! ```toml
//! [network]
//! upstream_proxy = "proxy.example.org:3128"
//! upstream_bypass = ["*.internal.example.org"]
//!
//! [credentials.build]             # nono run --credential build=file:token …
//! host = "build.example.org"
//! header = "X-Build-Token"        # or query = "token", or basic_user = "me"; else Authorization: Bearer
//! format = "{}"
//! env = ["BUILD_TOKEN"]
//! base_url_env = "BUILD_URL"
//! base_path = "/api"
//! ```

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nono_policy::UnknownKey;
use nono_policy::host_rule::HostRule;
use nono_proxy::Inject;
use thiserror::Error;
use toml::{Table, Value};

use super::services::ServiceSpec;
use super::{UpstreamError, UpstreamProxy};

/// Error in the file. The message names the key.
#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("{} cannot be read: {}", .path.display(), nono_sys::errno::describe(.source))]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Wrong { path: PathBuf, source: NetworkSettingProblem },
}

/// Part of the file that is wrong.
#[derive(Debug, Error)]
pub enum NetworkSettingProblem {
    #[error(transparent)]
    Syntax(#[from] Box<toml::de::Error>),
    #[error("`{key}` {why}")]
    Key { key: String, why: String },
    #[error(transparent)]
    Unknown(#[from] UnknownKey),
    #[error("`credentials.{name}`: use letters, digits, `-` and `_` for a name")]
    Name { name: String },
}

#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    pub upstream: Option<UpstreamProxy>,
    pub services: BTreeMap<String, ServiceSpec>,
}

impl NetworkSettings {
    /// Load the settings; the defaults if there is no file.
    pub fn load(file: &Path) -> Result<NetworkSettings, SettingsError> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            // Without a folder there is no file; a state folder that is not a directory is reported elsewhere.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(NetworkSettings::default());
            }
            Err(source) => return Err(SettingsError::Unreadable { path: file.to_owned(), source }),
        };
        parse(&text).map_err(|source| SettingsError::Wrong { path: file.to_owned(), source })
    }
}

fn parse(text: &str) -> Result<NetworkSettings, NetworkSettingProblem> {
    let table: Table = text.parse().map_err(Box::new)?;
    let mut settings = NetworkSettings::default();
    if let Some(network) = Keys::of(&table, "network")? {
        settings.upstream = upstream_of(&network)?;
        network.nothing_else(&["upstream_proxy", "upstream_bypass"])?;
    }
    if let Some(credentials) = Keys::of(&table, "credentials")? {
        for name in credentials.table.keys() {
            let Some(keys) = Keys::of(credentials.table, name)? else { continue };
            let keys = Keys { path: format!("credentials.{name}"), ..keys };
            settings.services.insert(name.clone(), service(name, &keys)?);
        }
    }
    Ok(settings)
}

fn upstream_of(keys: &Keys<'_>) -> Result<Option<UpstreamProxy>, NetworkSettingProblem> {
    let bypass = keys.list("upstream_bypass")?;
    let Some(text) = keys.text("upstream_proxy")? else {
        return if bypass.is_empty() {
            Ok(None)
        } else {
            Err(keys.wrong("upstream_bypass", "requires upstream_proxy"))
        };
    };
    let wrong = |error: UpstreamError| keys.wrong("upstream_proxy", &error.to_string());
    let proxy = text.parse::<UpstreamProxy>().map_err(wrong)?;
    let rule = |text: &String| text.parse::<HostRule>();
    let bypass = bypass.iter().map(rule).collect::<Result<_, _>>();
    let bypass = bypass.map_err(|error| keys.wrong("upstream_bypass", &error.to_string()))?;
    Ok(Some(UpstreamProxy { bypass, ..proxy }))
}

const SERVICE_KEYS: &[&str] = &[
    "host",
    "port",
    "scheme",
    "header",
    "format",
    "query",
    "basic_user",
    "env",
    "base_url_env",
    "base_path",
];

fn service(name: &str, keys: &Keys<'_>) -> Result<ServiceSpec, NetworkSettingProblem> {
    keys.nothing_else(SERVICE_KEYS)?;
    if !is_name(name) {
        return Err(NetworkSettingProblem::Name { name: name.to_owned() });
    }
    let host = keys.text("host")?.ok_or_else(|| keys.wrong("host", "is missing"))?;
    let https = match keys.text("scheme")? {
        None | Some("https") => true,
        Some("http") => false,
        Some(_) => return Err(keys.wrong("scheme", "should be \"https\" or \"http\"")),
    };
    let variables = keys.list("env")?;
    let base_variable = keys.text("base_url_env")?;
    for variable in variables.iter().map(String::as_str).chain(base_variable) {
        if variable.is_empty() || variable.contains(['=', '\0']) || variable.starts_with("NONO_") {
            return Err(keys.wrong("env", "should name variables, none of them nono's own"));
        }
    }
    let base_path = keys.text("base_path")?;
    if base_path.is_some_and(|path| !path.starts_with('/')) {
        return Err(keys.wrong("base_path", "should begin with /"));
    }
    if base_path.is_some() && base_variable.is_none() {
        return Err(keys.wrong("base_path", "requires base_url_env"));
    }
    Ok(ServiceSpec {
        name: name.to_owned(),
        https,
        host: host.parse().map_err(|error| keys.wrong("host", &format!("is wrong: {error}")))?,
        port: keys.port("port")?.unwrap_or(if https { 443 } else { 80 }),
        inject: inject(keys)?,
        variables,
        base_url: base_variable.map(|name| (name.to_owned(), base_path.unwrap_or_default().to_owned())),
    })
}

/// Place of the credential: exactly one.
fn inject(keys: &Keys<'_>) -> Result<Inject, NetworkSettingProblem> {
    let (header, format) = (keys.text("header")?, keys.text("format")?);
    let (query, user) = (keys.text("query")?, keys.text("basic_user")?);
    if [header, query, user].iter().flatten().count() > 1 {
        return Err(keys.wrong("header", "excludes `query` and `basic_user`: set only one of the three"));
    }
    if format.is_some() && (query.is_some() || user.is_some()) {
        return Err(keys.wrong("format", "applies to a header only: remove it, or `query` and `basic_user`"));
    }
    if let Some(name) = query {
        let fine = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
        return if fine {
            Ok(Inject::Query { name: name.to_owned() })
        } else {
            Err(keys.wrong("query", "is not a valid name"))
        };
    }
    if let Some(user) = user {
        let fine = !user.contains(':') && !user.chars().any(char::is_control);
        let wrong = || keys.wrong("basic_user", "cannot be a user's name");
        return fine.then(|| Inject::Basic { user: user.to_owned() }).ok_or_else(wrong);
    }
    let name = header.unwrap_or("Authorization");
    if name.is_empty()
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    {
        return Err(keys.wrong("header", "is not a header name"));
    }
    let format = format.unwrap_or(if header.is_some() { "{}" } else { "Bearer {}" });
    if format.matches("{}").count() != 1 || !format.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(keys.wrong("format", "should be plain text with one {} where the credential goes"));
    }
    Ok(Inject::Header { name: name.to_owned(), format: format.to_owned() })
}

/// Whether this can be a service name: it is part of an address (`http://127.0.0.1:PORT/NAME`).
pub(super) fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(fine)
}

/// A table and its name.
struct Keys<'a> {
    table: &'a Table,
    path: String,
}

impl<'a> Keys<'a> {
    fn of(table: &'a Table, name: &str) -> Result<Option<Keys<'a>>, NetworkSettingProblem> {
        match table.get(name) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Keys { table, path: name.to_owned() })),
            Some(_) => {
                Err(NetworkSettingProblem::Key { key: name.to_owned(), why: "should be a table".to_owned() })
            }
        }
    }

    fn wrong(&self, key: &str, why: &str) -> NetworkSettingProblem {
        NetworkSettingProblem::Key { key: format!("{}.{key}", self.path), why: why.to_owned() }
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, NetworkSettingProblem> {
        let value = self.table.get(key);
        value.map(|value| value.as_str().ok_or_else(|| self.wrong(key, "should be text"))).transpose()
    }

    fn port(&self, key: &str) -> Result<Option<u16>, NetworkSettingProblem> {
        let port =
            |value: &Value| value.as_integer().and_then(|port| u16::try_from(port).ok()).filter(|p| *p > 0);
        let wrong = || self.wrong(key, "should be a number from 1 to 65535");
        self.table.get(key).map(|value| port(value).ok_or_else(wrong)).transpose()
    }

    /// One string, or several.
    fn list(&self, key: &str) -> Result<Vec<String>, NetworkSettingProblem> {
        let wrong = || self.wrong(key, "should be a list of texts");
        match self.table.get(key) {
            None => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(Value::Array(several)) => {
                several.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    fn nothing_else(&self, known: &[&str]) -> Result<(), NetworkSettingProblem> {
        match self.table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(UnknownKey::new(&self.path, key, known).into()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_services_are_read() {
        let text = "[rollback]\nmax_sessions = 3\n[credentials.build]\nhost = \"Build.Example.org.\"\n\
                    header = \"X-Token\"\nenv = [\"A\", \"B\"]\nbase_url_env = \"URL\"\nbase_path = \"/api\"\n\
                    [credentials.old]\nhost = \"10.0.0.1\"\nscheme = \"http\"\nquery = \"key\"\nenv = \"C\"\n\
                    [credentials.basic]\nhost = \"h\"\nbasic_user = \"me\"\nport = 8443\n\
                    [credentials.plain]\nhost = \"p\"";
        let settings = parse(text).unwrap();
        let build = &settings.services["build"];
        assert_eq!(build.rule().to_string(), "build.example.org:443");
        assert_eq!(build.inject, Inject::Header { name: "X-Token".into(), format: "{}".into() });
        assert_eq!(build.variables, ["A", "B"]);
        assert_eq!(build.base_url, Some(("URL".into(), "/api".into())));
        let old = &settings.services["old"];
        assert_eq!((old.port, old.https, old.variables.as_slice()), (80, false, &["C".to_owned()][..]));
        assert_eq!(old.inject, Inject::Query { name: "key".into() });
        let basic = &settings.services["basic"];
        assert_eq!((basic.port, &basic.inject), (8443, &Inject::Basic { user: "me".into() }));
        let plain = Inject::Header { name: "Authorization".into(), format: "Bearer {}".into() };
        assert_eq!(settings.services["plain"].inject, plain);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, key) in [
            ("credentials = 1", "`credentials`"),
            ("[credentials]\nx = 1", "`x`"),
            ("[credentials.x]", "`credentials.x.host` is missing"),
            ("[credentials.x]\nhost = \"a b\"", "`credentials.x.host`"),
            ("[credentials.x]\nhost = 1", "`credentials.x.host`"),
            ("[credentials.x]\nhost = \"h\"\nport = 0", "`credentials.x.port`"),
            ("[credentials.x]\nhost = \"h\"\nscheme = \"ftp\"", "`credentials.x.scheme`"),
            ("[credentials.x]\nhost = \"h\"\nheader = \"a b\"", "`credentials.x.header`"),
            ("[credentials.x]\nhost = \"h\"\nheader = \"a\"\nquery = \"b\"", "`credentials.x.header`"),
            ("[credentials.x]\nhost = \"h\"\nformat = \"no\"", "`credentials.x.format`"),
            ("[credentials.x]\nhost = \"h\"\nformat = \"{}\\r\\n\"", "`credentials.x.format`"),
            ("[credentials.x]\nhost = \"h\"\nquery = \"a&b\"", "`credentials.x.query`"),
            ("[credentials.x]\nhost = \"h\"\nbasic_user = \"a:b\"", "`credentials.x.basic_user`"),
            ("[credentials.x]\nhost = \"h\"\nenv = 1", "`credentials.x.env`"),
            ("[credentials.x]\nhost = \"h\"\nenv = \"NONO_X\"", "`credentials.x.env`"),
            ("[credentials.x]\nhost = \"h\"\nbase_path = \"/x\"", "`credentials.x.base_path`"),
            ("[credentials.x]\nhost = \"h\"\nsecret = \"s\"", "unknown key \"credentials.x.secret\""),
            ("[credentials.\"a/b\"]\nhost = \"h\"", "`credentials.a/b`"),
            ("[network]\nupstream_proxy = \"x\"", "`network.upstream_proxy`"),
            ("[network]\nupstream_bypass = [\"x\"]", "`network.upstream_bypass`"),
            ("[network]\nallow = 1", "unknown key \"network.allow\""),
            (
                "[network]\nupstream = 1",
                "unknown key \"network.upstream\" (nearest: \"network.upstream_proxy\")",
            ),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(key), "{text}: {said}");
        }
    }

    #[test]
    fn another_proxy_is_read() {
        let text = "[network]\nupstream_proxy = \"proxy:3128\"\nupstream_bypass = [\"*.internal\"]";
        let upstream = parse(text).unwrap().upstream.unwrap();
        assert_eq!((upstream.host.as_str(), upstream.port), ("proxy", 3128));
        assert_eq!(upstream.bypass[0].to_string(), "*.internal");
        assert!(parse("").unwrap().upstream.is_none());
    }
}
