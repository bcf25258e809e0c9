//! Expansion of `~`, `$HOME`, `$WORKDIR` and `$XDG_*` at the start of a path of a profile or group.
//!
//! Only the beginning is expanded, and only these names: a profile cannot depend on the rest of the environment.
//! A relative path is relative to the working directory. An `$XDG_*` folder that is unset or relative has the place
//! its specification says.

use std::path::{Path, PathBuf};

use crate::error::PolicyError;
use crate::request::HostContext;

/// The absolute path that `text` means on this host.
pub(crate) fn expand(text: &str, host: &HostContext) -> Result<PathBuf, PolicyError> {
    let (start, rest) = split(text);
    let base = match start {
        "~" | "$HOME" => home(text, host)?.to_path_buf(),
        "$WORKDIR" => host.cwd.clone(),
        _ => match start.strip_prefix('$') {
            Some(variable) => xdg(text, variable, host)?,
            None => return Ok(host.absolute(Path::new(text))),
        },
    };
    Ok(host.absolute(&base.join(rest)))
}

/// Every path that a protected path may stand for: in the folder the variable names, and in the default folder.
/// Empty without a home folder.
pub(crate) fn expand_everywhere(text: &str, host: &HostContext) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = expand(text, host).into_iter().collect();
    let (start, rest) = split(text);
    if let (Some(default), Some(home)) = (default_below_home(start.trim_start_matches('$')), &host.home) {
        let usual = host.absolute(&home.join(default).join(rest));
        if !places.contains(&usual) {
            places.push(usual);
        }
    }
    places
}

fn split(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or((text, ""))
}

fn home<'a>(text: &str, host: &'a HostContext) -> Result<&'a Path, PolicyError> {
    host.home.as_deref().ok_or_else(|| PolicyError::NoHome { text: text.to_owned() })
}

fn xdg(text: &str, variable: &str, host: &HostContext) -> Result<PathBuf, PolicyError> {
    let unknown = || PolicyError::UnknownVariable { text: text.to_owned(), variable: variable.to_owned() };
    let set = match variable {
        "XDG_CONFIG_HOME" => &host.xdg_config,
        "XDG_DATA_HOME" => &host.xdg_data,
        "XDG_CACHE_HOME" => &host.xdg_cache,
        "XDG_STATE_HOME" => &host.xdg_state,
        "XDG_RUNTIME_DIR" => &host.xdg_runtime,
        _ => return Err(unknown()),
    };
    match (set.as_ref().filter(|path| path.is_absolute()), default_below_home(variable)) {
        (Some(path), _) => Ok(path.clone()),
        (None, Some(default)) => Ok(home(text, host)?.join(default)),
        (None, None) => Err(unknown()),
    }
}

fn default_below_home(variable: &str) -> Option<&'static str> {
    match variable {
        "XDG_CONFIG_HOME" => Some(".config"),
        "XDG_DATA_HOME" => Some(".local/share"),
        "XDG_CACHE_HOME" => Some(".cache"),
        "XDG_STATE_HOME" => Some(".local/state"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostContext {
        HostContext { cwd: "/w".into(), home: Some("/h".into()), ..HostContext::default() }
    }

    #[test]
    fn the_known_beginnings_are_expanded() {
        let host = HostContext { xdg_cache: Some("/c".into()), xdg_data: Some("relative".into()), ..host() };
        for (text, path) in [
            ("~", "/h"),
            ("~/.ssh", "/h/.ssh"),
            ("$HOME/x", "/h/x"),
            ("$WORKDIR/.env", "/w/.env"),
            ("$XDG_CACHE_HOME/a", "/c/a"),
            ("$XDG_CONFIG_HOME/a", "/h/.config/a"),
            ("$XDG_DATA_HOME/a", "/h/.local/share/a"),
            ("/x/~", "/x/~"),
            ("~other/x", "/w/~other/x"),
            ("sub", "/w/sub"),
        ] {
            assert_eq!(expand(text, &host).unwrap(), Path::new(path), "{text}");
        }
    }

    #[test]
    fn other_variables_and_a_missing_home_are_errors() {
        assert!(
            matches!(expand("$FOO/x", &host()), Err(PolicyError::UnknownVariable { variable, .. }) if variable == "FOO")
        );
        assert!(matches!(expand("$XDG_RUNTIME_DIR/x", &host()), Err(PolicyError::UnknownVariable { .. })));
        let homeless = HostContext { home: None, ..host() };
        assert!(matches!(expand("~/x", &homeless), Err(PolicyError::NoHome { .. })));
        assert!(expand_everywhere("$XDG_CONFIG_HOME/x", &homeless).is_empty());
    }

    #[test]
    fn a_protected_folder_is_closed_in_both_places() {
        let host = HostContext { xdg_config: Some("/cfg".into()), ..host() };
        let places = expand_everywhere("$XDG_CONFIG_HOME/gcloud", &host);
        assert_eq!(places, [PathBuf::from("/cfg/gcloud"), PathBuf::from("/h/.config/gcloud")]);
        assert_eq!(expand_everywhere("~/.ssh", &host).len(), 1);
    }
}
