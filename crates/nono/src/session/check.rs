//! Proof that the sandbox holds: once per boot, kernel and binary, a confined canary process tries to escape.

use std::path::Path;

use nono_policy::{CapabilitySet, CapabilitySetBuilder, PolicyError};
use nono_sandbox::{ExecStrategy, Prepared, Support, compile};
use nono_supervisor::{Canary, RunError, canary};
use nono_sys::fs;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::folder::SessionFolder;

const FILE: &str = "kernel-check.json";

#[derive(Debug, Error)]
pub enum CheckError {
    #[error("the sandbox does not hold on this machine: a confined process {0}")]
    Escaped(&'static str),
    #[error("cannot test the sandbox: {0}")]
    Run(#[from] RunError),
    #[error("cannot test the sandbox: {0}")]
    Policy(#[from] PolicyError),
    #[error("cannot test the sandbox: {0}")]
    Capability(#[from] nono_policy::CapabilityError),
    #[error("cannot test the sandbox: {0}")]
    Refused(#[from] nono_sandbox::Refusal),
    #[error("cannot test the sandbox: cannot write {path}: {}", nono_sys::errno::describe(.source), path = .path.display())]
    Folder { path: std::path::PathBuf, source: std::io::Error },
}

#[derive(Serialize, Deserialize)]
struct CheckRecord {
    key: String,
    support: Support,
}

/// Support of this machine as recorded for this boot, kernel and binary; `None` without a valid record.
pub fn known_support(state_dir: &Path, binary: Option<&Path>) -> Option<Support> {
    let text = std::fs::read(state_dir.join(FILE)).ok()?;
    let record: CheckRecord = serde_json::from_slice(&text).ok()?;
    (record.key == key(binary)).then_some(record.support)
}

/// Record a successful check. If that fails, the next run repeats the check, which takes a few milliseconds.
pub fn remember(state_dir: &Path, binary: Option<&Path>, support: &Support) -> std::io::Result<()> {
    let record = CheckRecord { key: key(binary), support: support.clone() };
    let json = serde_json::to_vec(&record).map_err(std::io::Error::other)?;
    fs::write_atomic(&state_dir.join(FILE), &json)
}

/// Everything a result depends on: boot, kernel, binary, namespaces and user.
fn key(binary: Option<&Path>) -> String {
    use std::os::unix::fs::MetadataExt;
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let link = |path: &str| std::fs::read_link(path).map(|p| p.display().to_string()).unwrap_or_default();
    let binary = binary.and_then(|path| std::fs::metadata(path).ok()).map_or_else(String::new, |meta| {
        format!("{}:{}:{}:{}", meta.dev(), meta.ino(), meta.size(), meta.mtime_nsec() + meta.mtime())
    });
    [
        read("/proc/sys/kernel/random/boot_id"),
        nono_sys::process::kernel_release(),
        binary,
        link("/proc/self/ns/user"),
        link("/proc/self/ns/mnt"),
        nono_sys::process::uid().to_string(),
        env!("CARGO_PKG_VERSION").to_owned(),
    ]
    .join(" ")
}

/// Confine a child to one folder and let it try to read and write beside it.
pub fn try_canary(support: &Support, folder: &SessionFolder) -> Result<Canary, CheckError> {
    let secret = folder.dir.join("canary");
    if !secret.exists() {
        fs::make_file(&secret, 0o600, b"out of reach")
            .map_err(|source| CheckError::Folder { path: secret.clone(), source })?;
    }
    let caps = CapabilitySet::builder().allow_path(folder.tmp(), nono_policy::AccessMode::ReadWrite);
    let mut policy = caps.and_then(CapabilitySetBuilder::build)?.to_policy()?;
    policy.workdir = folder.tmp();
    let blueprint = compile(&policy, support, ExecStrategy::Supervised, &folder.paths())?;
    let prepared = Prepared::new(blueprint, folder.paths()).map_err(RunError::from)?;
    Ok(canary(&prepared, &secret, &folder.dir.join("canary-wrote"))?)
}

/// The canary's outcome as an error, if it escaped.
pub fn verdict(canary: Canary) -> Result<(), CheckError> {
    if canary.read {
        Err(CheckError::Escaped("could read a file that was not granted"))
    } else if canary.wrote {
        Err(CheckError::Escaped("could write a file that was not granted"))
    } else if canary.finished {
        Ok(())
    } else {
        Err(CheckError::Escaped("ended in an unexpected way"))
    }
}
