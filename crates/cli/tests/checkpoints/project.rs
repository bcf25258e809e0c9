//! A project in `work`, and what is done with its checkpoints.

use serde_json::Value;

use super::kit::{Kit, Said};
use nono_testkit::oracle::Oracle;

impl Kit {
    /// With a tree of many kinds of things that is a project.
    pub(crate) fn project() -> Kit {
        let kit = Kit::with_tree();
        kit.bare("printf 'all:\\n' > Makefile");
        kit
    }

    pub(crate) fn checkpoints(&self, args: &[&str]) -> Said {
        self.nono(&[&["checkpoints"], args].concat())
    }

    /// One by hand; its id.
    #[track_caller]
    pub(crate) fn take(&self) -> String {
        let made = self.checkpoints(&["create", "--json"]).ok().json();
        assert_eq!(made["result"], "taken", "{made}");
        made["checkpoint"]["id"].as_str().unwrap().to_owned()
    }

    /// Newest first.
    #[track_caller]
    pub(crate) fn list(&self) -> Vec<Value> {
        self.checkpoints(&["list", "--json"]).ok().json()["checkpoints"].as_array().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn restore(&self, args: &[&str]) -> Said {
        self.checkpoints(&[&["restore", "--yes"], args].concat())
    }
}

/// What is told of these paths and of what is below them, and the rest.
pub(crate) fn split(all: &Oracle, names: &[&str]) -> (Oracle, Oracle) {
    let is = |key: &str| {
        let path = key.strip_prefix("acl ").or_else(|| key.strip_prefix("xattrs ")).unwrap_or(key);
        names.iter().any(|name| path == *name || path.starts_with(&format!("{name}/")))
    };
    let (within, rest) = all.0.clone().into_iter().partition(|(key, _)| is(key));
    (Oracle(within), Oracle(rest))
}
