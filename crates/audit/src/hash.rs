//! Digests, each with a domain of its own, so that a digest of one kind never equals one of another.

use std::fmt;
use std::io::BufWriter;

use nono_sys::hex;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Domain of the digest of an event's exact bytes.
pub const EVENT_DOMAIN: &[u8] = b"nono.audit.event.alpha\n";
/// Domain of the digest of the chain so far and the next leaf.
pub const CHAIN_DOMAIN: &[u8] = b"nono.audit.chain.alpha\n";
/// Domain of the digest of two nodes of the Merkle tree.
pub const MERKLE_DOMAIN: &[u8] = b"nono.audit.merkle.alpha\n";
/// Domain of the digest of a session's record.
pub const SESSION_DIGEST_DOMAIN: &[u8] = b"nono.audit.session-digest.alpha\n";
/// Domain of the digest of the ledger so far and its next entry.
pub const LEDGER_CHAIN_DOMAIN: &[u8] = b"nono.audit.ledger.chain.alpha\n";
/// Domain of the message that a key signs.
pub const SEAL_DOMAIN: &[u8] = b"nono.audit.seal.alpha\n";

/// Name of the algorithm in records.
pub const ALGORITHM: &str = "sha256";

/// A SHA-256 digest; 64 lower-case hexadecimal digits in text.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Chain digest before the first record.
    pub const ZERO: Digest = Digest([0; 32]);

    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Digest of the concatenated `parts` in `domain`.
    pub fn of(domain: &[u8], parts: &[&[u8]]) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(domain);
        for part in parts {
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    /// Digest of a value as compact JSON, which is streamed.
    pub fn of_json(value: &impl Serialize) -> Result<Digest, serde_json::Error> {
        let mut hasher = BufWriter::new(Sha256::new());
        serde_json::to_writer(&mut hasher, value)?;
        // Writing to a hasher cannot fail.
        let hasher = hasher.into_inner().map_err(|error| serde_json::Error::io(error.into_error()))?;
        Ok(Digest(hasher.finalize().into()))
    }

    pub fn hex(&self) -> String {
        self.digits().iter().map(|digit| char::from(*digit)).collect()
    }

    /// Hexadecimal digits. Written by hand for speed: every record has three digests.
    fn digits(&self) -> [u8; 64] {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        digits
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = self.digits();
        let text = std::str::from_utf8(&digits).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(text)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Digest, Self::Error> {
        let is_lower = text.bytes().all(|byte| !byte.is_ascii_uppercase());
        let bytes = hex::decode(&text).filter(|_| is_lower).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Digest).ok_or("a digest is 64 lower-case hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_json_is_that_of_its_bytes() {
        let value: Vec<String> = (0..5000).map(|number| format!("\"{number}\n")).collect();
        let bytes = serde_json::to_vec(&value).unwrap();
        assert_eq!(Digest::of_json(&value).unwrap(), Digest::of(b"", &[&bytes]));
    }
}
