//! Frames between the supervisor and the webhook's helper, over pipes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::helper::Frames;

/// Maximum size of the service's answer in bytes.
pub(super) const MAX_ANSWER: usize = 64 << 10;
/// Frame limit: an answer with every byte escaped, and the fields around it.
pub(super) const FRAMES: Frames = Frames { most: 8 * MAX_ANSWER };

/// The first frame to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) url: String,
    /// File of certificates to trust instead of the system's.
    #[serde(with = "nono_policy::path_serde::optional")]
    pub(super) certificates: Option<PathBuf>,
}

/// Every later frame to the helper: one question, ready to be sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) sequence: u64,
    pub(super) timeout_ms: u64,
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub(super) enum WebhookHelperMessage {
    /// Confined, and waiting for questions.
    Ready,
    /// The helper cannot start.
    Unable { why: String },
    /// The service's answer, unparsed.
    Reply { sequence: u64, reply: WebhookResponse },
    /// No answer. `connected`: the service may have seen the question.
    Nothing { sequence: u64, connected: bool, why: String },
}

/// An HTTP response, with the headers that matter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WebhookResponse {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_arrives() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/x\xff".to_vec()));
        let setup = Setup { url: "u".to_owned(), certificates: Some(path.clone()) };
        let bytes = FRAMES.encode(&setup).unwrap();
        let back: Setup = FRAMES.read(&mut bytes.as_slice()).unwrap().unwrap();
        assert_eq!(back.certificates, Some(path));
    }
}
