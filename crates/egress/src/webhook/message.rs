//! Questions to the web service and its answers, signed both ways.
//!
//! A signature is HMAC-SHA256 over `v1:`, the timestamp, `:` and the body. The answer must repeat the question's id and
//! nonce, so that a recorded answer, or one to another question, opens nothing.

use std::fmt;
use std::path::Path;

use nono_supervisor::approval::{Question, Scope, Subject, Verdict};
use nono_sys::hex;
use ring::hmac;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::wire::WebhookResponse;

/// Header names in both directions.
pub(super) const TIMESTAMP: &str = "X-Nono-Timestamp";
pub(super) const SIGNATURE: &str = "X-Nono-Signature";

const VERSION: u32 = 1;
/// Maximum length of the command's reason in characters: the user reads its beginning.
const MAX_REASON: usize = 1000;
const MAX_BY: usize = 100;

/// Key shared by nono and the service only.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Minimum length in bytes.
    pub const SHORTEST: usize = 16;

    /// `None` if the text is too short. White space at both ends is dropped, since files end with a line break.
    pub fn new(text: &str) -> Option<Secret> {
        let bytes = text.trim().as_bytes();
        (bytes.len() >= Secret::SHORTEST).then(|| Secret(bytes.to_vec()))
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }

    pub(super) fn sign(&self, timestamp: &str, body: &str) -> String {
        let mut signing = hmac::Context::with_key(&self.key());
        for part in ["v1:", timestamp, ":", body] {
            signing.update(part.as_bytes());
        }
        format!("v1={}", hex::encode(signing.sign().as_ref()))
    }

    /// Compare in constant time.
    fn verifies(&self, signature: &str, timestamp: &str, body: &str) -> bool {
        let given = signature.strip_prefix("v1=").and_then(hex::decode);
        let signed = format!("v1:{timestamp}:{body}");
        given.is_some_and(|given| hmac::verify(&self.key(), signed.as_bytes(), &given).is_ok())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[derive(Debug, Serialize)]
pub(super) struct QuestionBody<'a> {
    version: u32,
    session: &'a str,
    id: u64,
    nonce: &'a str,
    time: &'a str,
    subject: &'a Subject,
    #[serde(with = "nono_policy::path_serde")]
    program: &'a Path,
    pid: u32,
    reason: Option<String>,
}

impl<'a> QuestionBody<'a> {
    pub(super) fn new(
        question: &'a Question,
        session: &'a str,
        nonce: &'a str,
        time: &'a str,
    ) -> QuestionBody<'a> {
        QuestionBody {
            version: VERSION,
            session,
            id: question.id,
            nonce,
            time,
            subject: &question.subject,
            program: &question.asker.program,
            pid: question.asker.pid,
            reason: question.reason.as_ref().map(|reason| reason.chars().take(MAX_REASON).collect()),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Answered {
    id: u64,
    nonce: String,
    decision: Decision,
    scope: Option<OfferedScope>,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
}

/// Scopes that a service can grant; only the user at the terminal can save a grant to a profile.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OfferedScope {
    Once,
    Session,
    Directory,
}

/// Reason a reply does not count as an answer.
#[derive(Debug, Error)]
pub(super) enum InvalidReply {
    #[error("the service redirects (status {0}), which is not followed")]
    Redirect(u16),
    #[error("the service answered with status {0}, not 200")]
    Status(u16),
    #[error("the answer is not application/json")]
    NotJson,
    #[error("the answer is not signed")]
    Unsigned,
    #[error("the answer has a wrong signature")]
    Signature,
    #[error("cannot parse the answer: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer belongs to another question")]
    OtherQuestion,
}

/// The verdict of a reply and the name of the decider.
pub(super) fn understand(
    reply: &WebhookResponse,
    secret: &Secret,
    id: u64,
    nonce: &str,
) -> Result<(Verdict, Option<String>), InvalidReply> {
    match reply.status {
        200 => {}
        status @ 300..400 => return Err(InvalidReply::Redirect(status)),
        status => return Err(InvalidReply::Status(status)),
    }
    let kind = reply.content_type.as_deref().unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(InvalidReply::NotJson);
    }
    let (Some(timestamp), Some(signature)) = (&reply.timestamp, &reply.signature) else {
        return Err(InvalidReply::Unsigned);
    };
    if !secret.verifies(signature, timestamp, &reply.body) {
        return Err(InvalidReply::Signature);
    }
    let answered: Answered = serde_json::from_str(&reply.body)?;
    if answered.id != id || answered.nonce != nonce {
        return Err(InvalidReply::OtherQuestion);
    }
    let by = answered.by.map(|by| nono_policy::text::escape(&by).chars().take(MAX_BY).collect());
    Ok((verdict(&answered.decision, answered.scope.as_ref()), by))
}

fn verdict(decision: &Decision, scope: Option<&OfferedScope>) -> Verdict {
    match (decision, scope) {
        (Decision::Deny, _) => Verdict::Deny,
        (Decision::Allow, None | Some(OfferedScope::Once)) => Verdict::Allow(Scope::Once),
        (Decision::Allow, Some(OfferedScope::Session)) => Verdict::Allow(Scope::Session),
        (Decision::Allow, Some(OfferedScope::Directory)) => Verdict::Allow(Scope::Directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "00112233445566778899aabbccddeeff";

    fn secret() -> Secret {
        Secret::new("0123456789abcdef\n").unwrap()
    }

    fn signed(body: &str) -> WebhookResponse {
        WebhookResponse {
            status: 200,
            content_type: Some("application/json; charset=utf-8".to_owned()),
            timestamp: Some("1".to_owned()),
            signature: Some(secret().sign("1", body)),
            body: body.to_owned(),
        }
    }

    #[test]
    fn the_signature_is_standard_hmac() {
        // printf 'v1:1700000000:{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let expected = "v1=31ab1a5f612982cbb606c3c6f69fbba87fb23b3157b28a815b8e95ee6561e8c5";
        assert_eq!(secret().sign("1700000000", "{}"), expected);
    }

    #[test]
    fn a_clear_answer_is_taken() {
        let body =
            format!(r#"{{"id":7,"nonce":"{NONCE}","decision":"allow","scope":"session","by":"a\u001bb"}}"#);
        let (verdict, by) = understand(&signed(&body), &secret(), 7, NONCE).unwrap();
        assert_eq!(verdict, Verdict::Allow(Scope::Session));
        assert!(!by.unwrap().contains('\u{1b}'));
        let body = format!(r#"{{"id":7,"nonce":"{NONCE}","decision":"allow"}}"#);
        assert_eq!(understand(&signed(&body), &secret(), 7, NONCE).unwrap().0, Verdict::Allow(Scope::Once));
    }

    #[test]
    fn anything_else_is_no_answer() {
        let right = format!(r#"{{"id":7,"nonce":"{NONCE}","decision":"allow"}}"#);
        assert!(understand(&signed(&right), &secret(), 7, NONCE).is_ok());
        let other = Secret::new("fedcba9876543210").unwrap();
        let replies = [
            WebhookResponse { status: 201, ..signed(&right) },
            WebhookResponse { status: 302, ..signed(&right) },
            WebhookResponse { content_type: None, ..signed(&right) },
            WebhookResponse { content_type: Some("text/html".to_owned()), ..signed(&right) },
            WebhookResponse { signature: None, ..signed(&right) },
            WebhookResponse { timestamp: None, ..signed(&right) },
            WebhookResponse { timestamp: Some("2".to_owned()), ..signed(&right) },
            WebhookResponse { signature: Some("v1=".to_owned()), ..signed(&right) },
            WebhookResponse { signature: Some("v1=zz".to_owned()), ..signed(&right) },
            WebhookResponse { signature: Some(other.sign("1", &right)), ..signed(&right) },
            WebhookResponse { body: right.replace("allow", "allow "), ..signed(&right) },
            signed(&right.replace("allow", "yes")),
            signed(&right.replace('7', "8")),
            signed(&right.replace("ff", "fe")),
            signed(&right.replace('}', r#","scope":"saved"}"#)),
            signed(&right.replace('}', r#","decision":"deny"}"#)),
            signed("[]"),
            signed(""),
        ];
        for reply in replies {
            assert!(understand(&reply, &secret(), 7, NONCE).is_err(), "{reply:?}");
        }
    }

    #[test]
    fn short_secrets_are_none() {
        assert!(Secret::new("0123456789abcde\n").is_none());
        assert_eq!(format!("{:?}", secret()), "Secret(..)");
    }
}
