//! Policy documents: named groups of paths and network rules, as other programs write them.
//!
//! A document is JSON of a fixed shape, and every unknown key is refused by name: a misspelled rule must not become a
//! missing rule. [`PolicyDocument::resolve`] adds what groups allow to a set of capabilities, all of it or nothing;
//! [`PolicyDocument::proxy`] returns their network rules. The paths that groups deny are a list for the caller to check
//! grants against ([`deny_overlaps`]): grants only add up, so nothing here enforces it.
//! The caller passes the home and temporary folders and the platform as a [`DocumentRole`].

mod embedded;
mod error;
mod parse;
mod proxy;
mod resolve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use embedded::embedded;
pub use error::{DenyOverlap, DocumentError};
pub use proxy::DocumentProxy;
pub use resolve::{ResolvedDocument, deny_overlaps};

/// Host on which a document is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentRole {
    /// The value of `HOME`.
    pub home: Option<PathBuf>,
    /// The value of `TMPDIR`.
    pub tmpdir: Option<PathBuf>,
    /// `linux` or `macos`: groups of another platform are skipped.
    pub platform: String,
}

/// Policy document: named groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    #[serde(deserialize_with = "parse::unique")]
    pub groups: BTreeMap<String, DocumentGroup>,
    /// Profiles; kept when the document is written again, otherwise ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentGroup {
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// Whether the group cannot be excluded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Allow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// Links into `/private`, for macOS.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "parse::unique")]
    pub symlink_pairs: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<DocumentNetwork>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Allow {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readwrite: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deny {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub unlink: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub unlink_override_for_user_writable: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentNetwork {
    #[serde(skip_serializing_if = "is_false")]
    pub block: bool,
    #[serde(alias = "allow_proxy", alias = "proxy_allow", skip_serializing_if = "Vec::is_empty")]
    pub allow_domain: Vec<String>,
    /// Names of services predefined by other programs; nono predefines none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "parse::unique")]
    pub custom_credentials: BTreeMap<String, DocumentRoute>,
    #[serde(alias = "external_proxy", skip_serializing_if = "Option::is_none")]
    pub upstream_proxy: Option<String>,
    #[serde(alias = "external_proxy_bypass", skip_serializing_if = "Vec::is_empty")]
    pub upstream_bypass: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<usize>,
}

/// Route of the proxy that inserts a credential on the way to a service: `http://127.0.0.1:PORT/<prefix>/…` leads to
/// `upstream`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentRoute {
    pub prefix: String,
    pub upstream: String,
    /// Source of the secret: a variable's name, `env://NAME`, `file:///path`, `keyring://service/account`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_key: Option<String>,
    #[serde(default)]
    pub inject_mode: DocumentInject,
    #[serde(default = "authorization")]
    pub inject_header: String,
    /// `{}` stands for the secret. Without it: `Bearer {}` in `Authorization`, the bare secret elsewhere.
    #[serde(default = "bearer")]
    pub credential_format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_replacement: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_param_name: Option<String>,
    /// Variable from which programs read the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_var: Option<String>,
    /// Allowed methods and path globs; everything if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_rules: Vec<EndpointRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_client_cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_client_key: Option<PathBuf>,
}

/// Place of a secret in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentInject {
    #[default]
    Header,
    UrlPath,
    QueryParam,
    BasicAuth,
}

impl DocumentInject {
    pub fn word(self) -> &'static str {
        match self {
            DocumentInject::Header => "header",
            DocumentInject::UrlPath => "url_path",
            DocumentInject::QueryParam => "query_param",
            DocumentInject::BasicAuth => "basic_auth",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointRule {
    pub method: String,
    pub path: String,
}

impl PolicyDocument {
    pub fn parse(text: &str) -> Result<PolicyDocument, DocumentError> {
        serde_json::from_str(text).map_err(|source| DocumentError::Json { source })
    }

    /// Pretty-printed JSON, indented by two spaces, without default values.
    pub fn to_json(&self) -> Result<String, DocumentError> {
        serde_json::to_string_pretty(self).map_err(|source| DocumentError::Json { source })
    }

    /// Refuses to exclude a required group. Unknown names are ignored.
    pub fn check_exclusions<S: AsRef<str>>(&self, excluded: &[S]) -> Result<(), DocumentError> {
        let required = |name: &&str| self.groups.get(*name).is_some_and(|group| group.required);
        let names: Vec<&str> = excluded.iter().map(AsRef::as_ref).filter(required).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(DocumentError::RequiredExcluded { names: names.into_iter().map(str::to_owned).collect() })
    }

    /// The named groups that are for this platform, in this order.
    fn named<'a, S: AsRef<str>>(
        &'a self,
        names: &'a [S],
        place: &DocumentRole,
    ) -> Result<Vec<(&'a str, &'a DocumentGroup)>, DocumentError> {
        let mut groups = Vec::with_capacity(names.len());
        for name in names.iter().map(AsRef::as_ref) {
            let group = self.groups.get(name).ok_or_else(|| DocumentError::UnknownGroup {
                name: name.to_owned(),
                nearest: crate::error::nearest(name, self.groups.keys().map(String::as_str)),
            })?;
            if group.platform.as_ref().is_none_or(|platform| *platform == place.platform) {
                groups.push((name, group));
            }
        }
        Ok(groups)
    }
}

fn authorization() -> String {
    "Authorization".to_owned()
}

#[allow(clippy::unnecessary_wraps, reason = "serde wants the type of the field")]
fn bearer() -> Option<String> {
    Some("Bearer {}".to_owned())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}
