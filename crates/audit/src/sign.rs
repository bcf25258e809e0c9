//! Ed25519 signatures of seals. With the public key alone a verifier can check that a log is the one that was sealed.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::event::{Seal, Signature};
use crate::files;
use crate::hash::{Digest, SEAL_DOMAIN};

/// Name of the algorithm in a signature.
pub const ED25519_NAME: &str = "ed25519";

const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";
/// DER prefix of the 32 bytes of an Ed25519 public key (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Maximum size of a key file.
const MAX_FILE: u64 = 16 << 10;

#[derive(Debug, Error)]
pub enum KeyError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: others can read this key (mode {mode:04o}); chmod 600 it", .path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{}: this key belongs to another user (uid {uid})", .path.display())]
    Foreign { path: PathBuf, uid: u32 },
    #[error("{}: not an Ed25519 {kind} key", .path.display())]
    Malformed { path: PathBuf, kind: &'static str },
    #[error("{}: this key file is empty; put the key back from a copy, or remove the file and make another key with `nono audit keygen`", .path.display())]
    Empty { path: PathBuf },
    #[error("cannot create a key: the system has no random numbers")]
    Random,
}

#[derive(Debug, Error)]
pub enum SignError {
    #[error("the signature is not by the expected key")]
    OtherKey,
    #[error("the signature is wrong")]
    Wrong,
    #[error("the signature has an unknown format")]
    Malformed,
    #[error("the log is not signed")]
    Missing,
}

pub struct SigningKey {
    pair: Ed25519KeyPair,
    /// PKCS#8 document.
    document: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    /// Shows the key's id, never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public())
    }
}

impl SigningKey {
    pub fn generate() -> Result<SigningKey, KeyError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::Random)?;
        Self::parse(document.as_ref().to_vec()).ok_or(KeyError::Random)
    }

    fn parse(document: Vec<u8>) -> Option<SigningKey> {
        // Other programs write the format without the public key.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&document).ok()?;
        Some(SigningKey { pair, document })
    }

    /// Loads a PKCS#8 PEM file, or its base64 alone. A key that other users can read is refused: they could sign as
    /// well.
    pub fn load(path: &Path) -> Result<SigningKey, KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        let file = open_key(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(KeyError::Foreign { path: path.to_owned(), uid: meta.uid() });
        }
        if meta.mode() & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode: meta.mode() & 0o7777 });
        }
        let text = read_text(file).map_err(failed)?;
        if text.trim().is_empty() {
            return Err(KeyError::Empty { path: path.to_owned() });
        }
        let malformed = || KeyError::Malformed { path: path.to_owned(), kind: "private" };
        unarmour(&text, PRIVATE).and_then(SigningKey::parse).ok_or_else(malformed)
    }

    /// Saves the key as PKCS#8 PEM in a new file with mode 0600, durably. An existing file is not replaced.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        nono_sys::fs::make_file(path, 0o600, armour(&self.document, PRIVATE).as_bytes())
            .and_then(|()| nono_sys::fs::sync_new(path))
            .map_err(|source| KeyError::Io { path: path.to_owned(), source })
    }

    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(bytes)
    }

    pub(crate) fn sign(&self, seal: &Seal, session_id: &str) -> Result<Signature, serde_json::Error> {
        let signature = self.pair.sign(&message(seal, session_id)?);
        Ok(Signature {
            algorithm: ED25519_NAME.to_owned(),
            public_key: self.public().to_string(),
            signature: BASE64.encode(signature.as_ref()),
        })
    }
}

/// Ed25519 public key; as text, base64 of its 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Parses base64 of the 32 bytes, or PEM.
    pub fn parse(text: &str) -> Option<PublicKey> {
        let bytes = unarmour(text, PUBLIC)?;
        let bytes = bytes.strip_prefix(&PUBLIC_PREFIX).unwrap_or(&bytes);
        Some(PublicKey(bytes.try_into().ok()?))
    }

    pub fn load(path: &Path) -> Result<PublicKey, KeyError> {
        let text = open_key(path).and_then(read_text);
        let text = text.map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
        PublicKey::parse(&text).ok_or_else(|| KeyError::Malformed { path: path.to_owned(), kind: "public" })
    }

    pub fn pem(&self) -> String {
        armour(&[&PUBLIC_PREFIX[..], &self.0].concat(), PUBLIC)
    }

    /// Id of the key: the digest of its bytes.
    pub fn id(&self) -> Digest {
        Digest::of(b"", &[&self.0])
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl Seal {
    /// Checks the signature, by the key it names or by the expected one.
    pub fn check_signature(
        &self,
        session_id: &str,
        expected: Option<&PublicKey>,
    ) -> Result<PublicKey, SignError> {
        let signature = self.signature.as_ref().ok_or(SignError::Missing)?;
        let key = PublicKey::parse(&signature.public_key).ok_or(SignError::Malformed)?;
        if expected.is_some_and(|expected| *expected != key) {
            return Err(SignError::OtherKey);
        }
        let bytes = BASE64.decode(&signature.signature).map_err(|_| SignError::Malformed)?;
        let message = message(self, session_id).map_err(|_| SignError::Malformed)?;
        if signature.algorithm != ED25519_NAME {
            return Err(SignError::Malformed);
        }
        UnparsedPublicKey::new(&ED25519, key.0).verify(&message, &bytes).map_err(|_| SignError::Wrong)?;
        Ok(key)
    }
}

/// Signed message: the whole seal, and the session's id.
fn message(seal: &Seal, session_id: &str) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Signed<'a> {
        session_id: &'a str,
        time_ms: u64,
        hash_algorithm: &'a str,
        event_count: u64,
        chain_head: Digest,
        merkle_root: Digest,
        tree: Option<&'a Value>,
    }
    let mut message = SEAL_DOMAIN.to_vec();
    let signed = Signed {
        session_id,
        time_ms: seal.time_ms,
        hash_algorithm: &seal.hash_algorithm,
        event_count: seal.event_count,
        chain_head: seal.chain_head,
        merkle_root: seal.merkle_root,
        tree: seal.tree.as_ref(),
    };
    serde_json::to_writer(&mut message, &signed)?;
    Ok(message)
}

/// Opens a key file, which may be behind a link, unlike the files of a log.
fn open_key(path: &Path) -> io::Result<File> {
    files::open(&path.canonicalize()?)
}

fn read_text(file: File) -> io::Result<String> {
    let bytes = files::read_all(file, MAX_FILE)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("not text"))
}

fn armour(document: &[u8], label: &str) -> String {
    let text = BASE64.encode(document);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for (at, letter) in text.chars().enumerate() {
        if at > 0 && at % 64 == 0 {
            pem.push('\n');
        }
        pem.push(letter);
    }
    pem + &format!("\n-----END {label}-----\n")
}

fn unarmour(text: &str, label: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let inner = match text.strip_prefix(&format!("-----BEGIN {label}-----")) {
        Some(inner) => inner.strip_suffix(&format!("-----END {label}-----"))?,
        None => text,
    };
    let joined: String = inner.split_ascii_whitespace().collect();
    BASE64.decode(joined).ok()
}
