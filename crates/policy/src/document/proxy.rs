//! Network rules of several groups, combined.

use super::error::DocumentError;
use super::{DocumentNetwork, DocumentRole, DocumentRoute, PolicyDocument};

/// Combined proxy settings of some groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentProxy {
    /// Allowed hosts, in the order they were first named.
    pub hosts: Vec<String>,
    pub routes: Vec<DocumentRoute>,
    pub upstream_proxy: Option<String>,
    /// Hosts reached without the upstream proxy. Empty where there is none.
    pub upstream_bypass: Vec<String>,
    /// Smallest limit that a group sets.
    pub max_connections: Option<usize>,
}

impl DocumentNetwork {
    pub(super) fn needs_proxy(&self) -> bool {
        !(self.allow_domain.is_empty()
            && self.credentials.is_empty()
            && self.custom_credentials.is_empty()
            && self.upstream_proxy.is_none()
            && self.upstream_bypass.is_empty()
            && self.max_connections.is_none())
    }
}

impl PolicyDocument {
    /// Combined proxy settings of these groups, if they need a proxy.
    pub fn proxy<S: AsRef<str>>(
        &self,
        names: &[S],
        place: &DocumentRole,
    ) -> Result<Option<DocumentProxy>, DocumentError> {
        let mut merged = Merged::default();
        let mut needed = false;
        for (name, group) in self.named(names, place)? {
            let Some(network) = group.network.as_ref().filter(|network| network.needs_proxy()) else {
                continue;
            };
            needed = true;
            merged.add(name, network)?;
        }
        Ok(needed.then(|| merged.finish()))
    }
}

#[derive(Default)]
struct Merged {
    proxy: DocumentProxy,
    routes: Vec<(String, DocumentRoute)>,
    /// Group that set the upstream proxy.
    upstream_from: String,
}

impl Merged {
    fn add(&mut self, group: &str, network: &DocumentNetwork) -> Result<(), DocumentError> {
        if !network.credentials.is_empty() {
            let (group, names) = (group.to_owned(), network.credentials.clone());
            return Err(DocumentError::NamedCredentials { group, names });
        }
        add_new(&mut self.proxy.hosts, &network.allow_domain);
        add_new(&mut self.proxy.upstream_bypass, &network.upstream_bypass);
        for (name, route) in &network.custom_credentials {
            match self.routes.iter().find(|(known, _)| known == name) {
                None => self.routes.push((name.clone(), route.clone())),
                Some((_, known)) if known == route => {}
                Some(_) => return Err(DocumentError::RouteConflict { name: name.clone() }),
            }
        }
        match (&self.proxy.upstream_proxy, &network.upstream_proxy) {
            (Some(one), Some(two)) if one != two => {
                let (one, two) = (self.upstream_from.clone(), group.to_owned());
                return Err(DocumentError::UpstreamConflict { one, two });
            }
            (None, Some(upstream)) => {
                self.proxy.upstream_proxy = Some(upstream.clone());
                group.clone_into(&mut self.upstream_from);
            }
            _ => {}
        }
        let limits = [self.proxy.max_connections, network.max_connections];
        self.proxy.max_connections = limits.into_iter().flatten().min();
        Ok(())
    }

    fn finish(self) -> DocumentProxy {
        let mut proxy = self.proxy;
        proxy.routes = self.routes.into_iter().map(|(_, route)| route).collect();
        if proxy.upstream_proxy.is_none() {
            proxy.upstream_bypass.clear();
        }
        proxy
    }
}

fn add_new(known: &mut Vec<String>, more: &[String]) {
    for text in more {
        if !known.contains(text) {
            known.push(text.clone());
        }
    }
}
