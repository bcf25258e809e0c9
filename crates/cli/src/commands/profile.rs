//! `nono profile`: lists, shows, compares, validates and creates profiles.

use std::ffi::OsString;
use std::path::Path;

use nono::diagnostic::{escape, shown};
use nono::{DiffChange, MergedProfile, ProfileOrigin, ProfileRef, ProfileStore};
use serde_json::{Value, json};

use super::project_profile;
use crate::args::{ProfileCommand, here, profile_ref};
use crate::failure::Failure;
use crate::host::host;
use crate::message;

pub(crate) fn profile(command: ProfileCommand) -> Result<u8, Failure> {
    let dir = host(None)?.profile_dir;
    let store = ProfileStore::new(dir.clone());
    match command {
        ProfileCommand::List { json } => list(&store, json),
        ProfileCommand::Show { profile, json } => show(&store, &profile, json),
        ProfileCommand::Diff { from, to, json, exit_code } => diff(&store, (&from, &to), json, exit_code),
        ProfileCommand::Validate { files } => validate(&store, &files),
        ProfileCommand::Init { name, extends, dry_run } => {
            init(&store, dir.as_deref(), (&name, &extends), dry_run)
        }
        ProfileCommand::Trust(args) => project_profile::trust(&args),
        ProfileCommand::Schema => message::answer_json(&nono::profile_schema()),
    }
}

fn list(store: &ProfileStore, as_json: bool) -> Result<u8, Failure> {
    let profiles = store.list();
    let origin = |source: &ProfileOrigin| match source {
        ProfileOrigin::Builtin => "built in".to_owned(),
        ProfileOrigin::User(path) => shown(path),
    };
    if as_json {
        let entry = |info: &nono::ProfileInfo| {
            json!({
                "name": info.name,
                "description": info.description,
                "source": origin(&info.source),
                "extends": info.extends,
                "error": info.error,
            })
        };
        return message::answer_json(&profiles.iter().map(entry).collect::<Vec<_>>());
    }
    let line = |info: &nono::ProfileInfo| {
        let about = if let Some(error) = &info.error {
            format!("unusable: {}", escape(error))
        } else {
            let description = escape(info.description.as_deref().unwrap_or(""));
            format!("{description} ({})", origin(&info.source))
        };
        format!("{:<14} {about}", escape(&info.name))
    };
    let lines: Vec<String> = profiles.iter().map(line).collect();
    message::answer(&lines.join("\n"))
}

fn load(store: &ProfileStore, text: &str) -> Result<MergedProfile, Failure> {
    let wanted: ProfileRef = profile_ref(&OsString::from(text), &here()?)?;
    Ok(store.resolve(&wanted, &[])?)
}

fn show(store: &ProfileStore, name: &str, as_json: bool) -> Result<u8, Failure> {
    let profile = load(store, name)?;
    let value = profile_json(&profile);
    if as_json {
        return message::answer_json(&value);
    }
    let mut lines = vec![format!("{}: {}", profile.name(), profile.description.as_deref().unwrap_or(""))];
    lines.push(format!("inherits: {}", profile.chain.join(" < ")));
    for (key, entry) in value.as_object().into_iter().flatten() {
        lines.extend(section(key, entry));
    }
    message::answer(&lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("\n"))
}

/// Lines `key: value`; lists have one entry per line.
fn section(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            map.iter().flat_map(|(inner, value)| section(&format!("{key}.{inner}"), value)).collect()
        }
        Value::Array(list) if list.is_empty() => Vec::new(),
        Value::Array(list) => {
            let entry = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            std::iter::once(format!("{key}:"))
                .chain(list.iter().map(|value| format!("  {}", entry(value))))
                .collect()
        }
        Value::Null => Vec::new(),
        other => vec![format!("{key}: {}", other.as_str().map_or_else(|| other.to_string(), str::to_owned))],
    }
}

fn profile_json(profile: &MergedProfile) -> Value {
    let paths = |list: &[nono::ProfilePath]| list.iter().map(|at| at.path.clone()).collect::<Vec<_>>();
    let grants = profile.filesystem.grants.iter().map(|grant| {
        let optional = if grant.at.optional { " optional" } else { "" };
        format!("{} ({}){optional}", grant.at.path, grant.access)
    });
    json!({
        "groups": profile.groups,
        "filesystem": {
            "grants": grants.collect::<Vec<_>>(),
            "deny": paths(&profile.filesystem.deny),
            "bypass_protection": paths(&profile.filesystem.bypass_protection),
            "unix_socket": paths(&profile.filesystem.unix_socket),
        },
        "network": profile.network,
        "workdir": profile.workdir.access,
        "environment": profile.environment,
        "rollback": profile.rollback,
        "interactive": profile.interactive,
        "security": profile.security,
    })
}

fn diff(store: &ProfileStore, names: (&str, &str), as_json: bool, exit_code: bool) -> Result<u8, Failure> {
    let lines = nono::profile_diff(&load(store, names.0)?, &load(store, names.1)?);
    let code = u8::from(exit_code && !lines.is_empty());
    if as_json {
        message::answer_json(&lines)?;
    } else if lines.is_empty() {
        message::answer("no difference")?;
    } else {
        let text: Vec<String> = lines.iter().map(|line| escape(&diff_line(line))).collect();
        message::answer(&text.join("\n"))?;
    }
    Ok(code)
}

fn diff_line(line: &nono::DiffLine) -> String {
    let mark = match line.change {
        DiffChange::Added => '+',
        DiffChange::Removed => '-',
    };
    format!("{mark} {}: {}", line.key, line.value)
}

fn validate(store: &ProfileStore, files: &[std::path::PathBuf]) -> Result<u8, Failure> {
    let mut bad = 0;
    for file in files {
        match store.validate(file) {
            Ok(_) => {
                message::answer(&format!("{}: valid", shown(file)))?;
            }
            Err(error) => {
                bad += 1;
                Failure::from(error).report();
            }
        }
    }
    Ok(u8::from(bad > 0))
}

fn init(
    store: &ProfileStore,
    dir: Option<&Path>,
    (name, extends): (&str, &str),
    dry_run: bool,
) -> Result<u8, Failure> {
    load(store, extends)?;
    let text = nono::profile_template(name, extends);
    let dir = dir.ok_or_else(Failure::no_home)?;
    let file = dir.join(format!("{name}.json"));
    check_new_name(store, name, &file)?;
    if dry_run {
        return message::answer(text.trim_end());
    }
    write_new(&file, &text)?;
    message::answer(&format!("{}\nuse it with: nono run -p {name} -- command", shown(&file)))
}

/// Writes a profile that must not exist yet.
pub(super) fn write_new(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::cannot("create", file, &error);
    std::fs::create_dir_all(file.parent().unwrap_or(file)).map_err(failed)?;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut out| std::io::Write::write_all(&mut out, text.as_bytes()))
        .map_err(failed)
}

pub(super) fn check_new_name(store: &ProfileStore, name: &str, file: &Path) -> Result<(), Failure> {
    let usable = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !usable {
        return Err(Failure::usage(format!(
            "{name:?} is not a profile name: use letters, digits, '-' and '_'"
        )));
    }
    if store.list().iter().any(|info| info.name == name && info.source == ProfileOrigin::Builtin) {
        return Err(
            Failure::new(format!("{name} is the name of a built-in profile")).hint("choose another name")
        );
    }
    if file.exists() {
        return Err(
            Failure::new(format!("{} already exists", shown(file))).hint("choose another name, or edit it")
        );
    }
    Ok(())
}
