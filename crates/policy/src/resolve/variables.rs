//! The environment rules of a run: defaults, then the profile, then the flags.
//!
//! A request for a variable that can inject code is refused here, with its name, rather than dropped silently later.
//! A name the user passes with a flag is no longer denied by the profile.

use super::Inputs;
use crate::data::PolicyData;
use crate::environment::{OWN_PREFIX, is_never, matches};
use crate::error::PolicyError;
use crate::request::EnvRequest;
use crate::resolved::EnvironmentRules;

pub(super) fn rules(inputs: &Inputs<'_>) -> Result<EnvironmentRules, PolicyError> {
    let (data, profile) = (inputs.data, &inputs.profile.environment);
    let mut rules = EnvironmentRules {
        allow: data.environment.allow.clone(),
        deny: profile.deny_vars.clone(),
        set: vec![],
        all: inputs.request.env_all,
    };
    for name in &profile.allow_vars {
        check_name(data, name)?;
        add(&mut rules.allow, name);
    }
    for (name, value) in &profile.set_vars {
        set(data, &mut rules, name, value)?;
    }
    for request in &inputs.request.env {
        match request {
            EnvRequest::Pass(name) => {
                check_name(data, name)?;
                rules.deny.retain(|denied| denied != name);
                rules.set.retain(|(known, _)| known != name);
                add(&mut rules.allow, name);
            }
            EnvRequest::Set(name, value) => set(data, &mut rules, name, value)?,
        }
    }
    Ok(rules)
}

fn set(data: &PolicyData, rules: &mut EnvironmentRules, name: &str, value: &str) -> Result<(), PolicyError> {
    check_name(data, name)?;
    if name.contains('*') || value.contains('\0') {
        return Err(PolicyError::BadVariable { name: name.to_owned() });
    }
    rules.set.push((name.to_owned(), value.to_owned()));
    Ok(())
}

fn add(list: &mut Vec<String>, name: &str) {
    if !list.iter().any(|known| known == name) {
        list.push(name.to_owned());
    }
}

fn check_name(data: &PolicyData, name: &str) -> Result<(), PolicyError> {
    let name_owned = name.to_owned();
    if name.is_empty() || name.contains(['=', '\0']) {
        Err(PolicyError::BadVariable { name: name_owned })
    } else if name.starts_with(OWN_PREFIX) {
        Err(PolicyError::ReservedVariable { name: name_owned })
    } else if is_never(data, name) || asks_only_for_never(data, name) {
        Err(PolicyError::NeverVariable { name: name_owned })
    } else {
        Ok(())
    }
}

/// Whether a pattern matches only variables that are never passed, as `LD_*` does; `L*` is filtered name by name.
fn asks_only_for_never(data: &PolicyData, pattern: &str) -> bool {
    let Some(start) = pattern.strip_suffix('*').filter(|start| !start.is_empty()) else { return false };
    let families =
        data.environment.never.iter().filter(|never| never.ends_with('*') && !never.starts_with('*'));
    families.into_iter().any(|family| matches(family, start))
}
