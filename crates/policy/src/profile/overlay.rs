//! Merging of a project's profile into the profile of a run.
//!
//! The project's profile only adds. It overrides neither a variable that the run's profile sets or denies, nor the
//! network filter of the run's profile.

use super::MergedProfile;
use super::merge::{absorb_groups, append};
use crate::environment::matches;

impl MergedProfile {
    /// Adds what a project's profile asks for to this one.
    pub fn lay_over(&mut self, over: &MergedProfile) {
        append(&mut self.chain, &over.chain);
        absorb_groups(&mut self.groups, &over.groups);
        for grant in &over.filesystem.grants {
            self.filesystem.add_grant(grant.clone());
        }
        append(&mut self.filesystem.deny, &over.filesystem.deny);
        self.lay_network(over);
        self.lay_environment(over);
        let (own, over) = (&mut self.rollback, &over.rollback);
        own.enabled = own.enabled.or(over.enabled);
        own.use_gitignore = own.use_gitignore.or(over.use_gitignore);
        append(&mut own.exclude_patterns, &over.exclude_patterns);
        append(&mut own.exclude_globs, &over.exclude_globs);
        append(&mut own.force_include, &over.force_include);
    }

    fn lay_network(&mut self, over: &MergedProfile) {
        let (own, over_network) = (&mut self.network, &over.network);
        let lists = |section: &super::NetworkSection| {
            !(section.allow_domain.is_empty()
                && section.allow_connect_port.is_empty()
                && section.listen_port.is_empty())
        };
        match over_network.block {
            Some(true) => own.block = Some(true),
            Some(false) if !lists(own) && own.block.is_none() => own.block = Some(false),
            Some(false) | None => {}
        }
        // Hosts and ports of an open network are open already, and a profile cannot have both.
        if own.block == Some(false) {
            return;
        }
        append(&mut own.allow_domain, &over_network.allow_domain);
        append(&mut own.allow_connect_port, &over_network.allow_connect_port);
        append(&mut own.listen_port, &over_network.listen_port);
        for (host, file) in &over.domain_from {
            self.domain_from.entry(host.clone()).or_insert_with(|| file.clone());
        }
    }

    fn lay_environment(&mut self, over: &MergedProfile) {
        let (own, over) = (&mut self.environment, &over.environment);
        let denied = own.deny_vars.clone();
        let is_free = |name: &&String| !denied.iter().any(|pattern| matches(pattern, name));
        let allowed: Vec<String> = over.allow_vars.iter().filter(is_free).cloned().collect();
        append(&mut own.allow_vars, &allowed);
        append(&mut own.deny_vars, &over.deny_vars);
        for (name, value) in over.set_vars.iter().filter(|(name, _)| is_free(name)) {
            own.set_vars.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}
