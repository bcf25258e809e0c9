//! The manifest: one snapshot's root nodes, frozen rules, coverage and digests, as a file.
//!
//! The file has exactly one form: JSON with a checksum; bytes that differ from what writing the same manifest would
//! give are refused. The session's record ([`crate::session`]) names the checksum, so a forged or changed manifest is
//! refused as well. A manifest can only name its own roots: everything below is nodes, whose names are single
//! components.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bytes::{Malformed, Reader, Writer};
use crate::coverage::Coverage;
use crate::hash::{ContentHash, MerkleRoot, StateRoot, content_hash, tagged};
use crate::node::{Entry, Reason};
use crate::paths;
use crate::state::{RootContent, RootState, SnapshotState};

/// Id of a snapshot within its session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotId {
    /// The n-th snapshot; 0 is the baseline.
    Number(u32),
    /// Snapshot taken before a restore, to undo it.
    Safety(String),
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnapshotId::Number(number) => write!(f, "{number}"),
            SnapshotId::Safety(id) => f.write_str(id),
        }
    }
}

impl SnapshotId {
    /// Number of a numbered snapshot.
    pub fn number(&self) -> Option<u32> {
        match self {
            SnapshotId::Number(number) => Some(*number),
            SnapshotId::Safety(_) => None,
        }
    }

    /// Text form, as used in a journal.
    pub(crate) fn to_text(&self) -> String {
        self.to_string()
    }

    pub(crate) fn from_text(text: &str) -> SnapshotId {
        match text.parse() {
            Ok(number) => SnapshotId::Number(number),
            Err(_) => SnapshotId::Safety(text.to_owned()),
        }
    }
}

impl From<u32> for SnapshotId {
    fn from(number: u32) -> SnapshotId {
        SnapshotId::Number(number)
    }
}

/// A snapshot without its files, which are in the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestBody {
    pub(crate) id: SnapshotId,
    pub(crate) timestamp: String,
    pub(crate) parent: Option<u32>,
    pub(crate) state: SnapshotState,
    /// Frozen rules of each root, in the order of the roots; `None` for a root that could not be captured.
    pub(crate) rules: Vec<Option<ContentHash>>,
    pub(crate) coverage: Coverage,
}

/// Serialised form of a manifest.
#[derive(Serialize, Deserialize)]
struct ManifestFile {
    format: u32,
    #[serde(flatten)]
    id: SnapshotId,
    timestamp: String,
    parent: Option<u32>,
    merkle_root: MerkleRoot,
    state_root: StateRoot,
    roots: Vec<RootForm>,
    coverage: Coverage,
    checksum: String,
}

#[derive(Serialize, Deserialize)]
struct RootForm {
    #[serde(with = "paths")]
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<ContentHash>,
}

const FORMAT: u32 = 1;

/// Reason why a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestDefect {
    #[error("it is not a manifest: {0}")]
    Syntax(String),
    #[error("its format {0} is unknown")]
    Format(u32),
    #[error("its checksum is wrong")]
    Checksum,
    #[error("its digests do not match its content")]
    Digests,
    #[error("it names a root that is not an absolute path")]
    Root,
    #[error("it is {0}")]
    Entry(#[from] Malformed),
    #[error("it is not the one in the session's record")]
    NotRecorded,
    #[error("its roots are not those of the session")]
    OtherRoots,
}

impl ManifestBody {
    pub(crate) fn number(&self) -> Option<u32> {
        self.id.number()
    }

    pub(crate) fn merkle_root(&self) -> MerkleRoot {
        let mut leaves = Vec::new();
        for root in &self.state.roots {
            let path = paths::bytes(&root.path);
            let length = (path.len() as u64).to_le_bytes();
            let content = root.content.entry().map(Entry::leaf);
            let content: &[u8] = content.as_ref().map_or(b"", |leaf| leaf);
            leaves.extend_from_slice(&tagged(&[0, b'r'], &[&length, path, content]));
        }
        MerkleRoot::from_bytes(tagged(&[1], &[&leaves]))
    }

    pub(crate) fn state_root(&self) -> StateRoot {
        let mut out = Writer::new();
        for (root, rules) in self.state.roots.iter().zip(&self.rules) {
            out.bytes(paths::bytes(&root.path));
            out.bytes(&content_bytes(&root.content));
            out.bytes(rules.as_ref().map_or(b"", |rules| rules.as_bytes()));
        }
        let coverage = serde_json::to_vec(&self.coverage).unwrap_or_default();
        StateRoot::from_bytes(tagged(b"nono state v1\0", &[&out.finish(), &coverage]))
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let roots = self.state.roots.iter().zip(&self.rules);
        let mut form = ManifestFile {
            format: FORMAT,
            id: self.id.clone(),
            timestamp: self.timestamp.clone(),
            parent: self.parent,
            merkle_root: self.merkle_root(),
            state_root: self.state_root(),
            roots: roots.map(|(root, rules)| root_form(root, *rules)).collect(),
            coverage: self.coverage.clone(),
            checksum: String::new(),
        };
        form.checksum = content_hash(&serde_json::to_vec(&form)?).hex();
        let mut bytes = serde_json::to_vec_pretty(&form)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Decode and check: the canonical form, the checksum, the digests, the roots.
    pub(crate) fn decode(bytes: &[u8]) -> Result<ManifestBody, ManifestDefect> {
        let form: ManifestFile =
            serde_json::from_slice(bytes).map_err(|error| ManifestDefect::Syntax(error.to_string()))?;
        if form.format != FORMAT {
            return Err(ManifestDefect::Format(form.format));
        }
        let (merkle_root, state_root) = (form.merkle_root, form.state_root);
        let sheet = ManifestBody::from_form(form)?;
        if sheet.encode().ok().as_deref() != Some(bytes) {
            let fits = (sheet.merkle_root(), sheet.state_root()) == (merkle_root, state_root);
            return Err(if fits { ManifestDefect::Checksum } else { ManifestDefect::Digests });
        }
        Ok(sheet)
    }

    fn from_form(form: ManifestFile) -> Result<ManifestBody, ManifestDefect> {
        let mut roots = Vec::new();
        let mut rules = Vec::new();
        for root in form.roots {
            rules.push(root.rules);
            roots.push(root_state(root)?);
        }
        Ok(ManifestBody {
            id: form.id,
            timestamp: form.timestamp,
            parent: form.parent,
            state: SnapshotState { roots },
            rules,
            coverage: form.coverage,
        })
    }
}

fn content_bytes(content: &RootContent) -> Vec<u8> {
    let mut out = Writer::new();
    match content {
        RootContent::Captured(entry) => {
            out.byte(1);
            entry.encode(&mut out);
        }
        RootContent::Absent => out.byte(2),
        RootContent::Failed(reason) => {
            out.byte(3);
            reason.encode(&mut out);
        }
    }
    out.finish()
}

fn root_form(root: &RootState, rules: Option<ContentHash>) -> RootForm {
    let mut form = RootForm { path: root.path.clone(), entry: None, failed: None, rules };
    match &root.content {
        RootContent::Captured(entry) => form.entry = Some(to_hex(|out| entry.encode(out))),
        RootContent::Absent => {}
        RootContent::Failed(reason) => form.failed = Some(to_hex(|out| reason.encode(out))),
    }
    form
}

fn to_hex(encode: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer::new();
    encode(&mut out);
    nono_sys::hex::encode(&out.finish())
}

fn from_hex<T>(
    hex: &str,
    decode: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let bytes = nono_sys::hex::decode(hex).ok_or(Malformed("hexadecimal digits"))?;
    let mut from = Reader::new(&bytes);
    let decoded = decode(&mut from)?;
    from.end()?;
    Ok(decoded)
}

fn root_state(form: RootForm) -> Result<RootState, ManifestDefect> {
    let content = match (form.entry, form.failed) {
        (Some(hex), None) => RootContent::Captured(from_hex(&hex, Entry::decode)?),
        (None, Some(hex)) => RootContent::Failed(from_hex(&hex, Reason::decode)?),
        (None, None) => RootContent::Absent,
        (Some(_), Some(_)) => return Err(ManifestDefect::Syntax("a root is captured or failed".to_owned())),
    };
    let name = form.path.file_name().map(|name| name.as_encoded_bytes().to_vec());
    let fits = content.entry().is_none_or(|entry| Some(entry.name.as_bytes()) == name.as_deref());
    if !is_plain(&form.path) || !fits {
        return Err(ManifestDefect::Root);
    }
    Ok(RootState { path: form.path, content })
}

/// Whether a path is absolute and has only normal components.
pub(crate) fn is_plain(path: &Path) -> bool {
    use std::path::Component;
    let mut components = path.components();
    let plain: PathBuf = path.components().collect();
    matches!(components.next(), Some(Component::RootDir))
        && components.all(|component| matches!(component, Component::Normal(_)))
        && path.file_name().is_some()
        && plain.as_os_str() == path.as_os_str()
}
