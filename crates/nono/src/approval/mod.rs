//! Who answers when a command wants more than it was granted: a file of rules, a service, nobody.
//!
//! The question and the trait are [`nono_supervisor::approval`]'s. Every answer here that is not a clear yes is a no.

pub mod rules;
pub mod trusted;
pub mod webhook;

pub use nono_supervisor::approval::{
    Answer, ApprovalBackend, ApprovalError, Asker, DenyAll, Object, Question, Scope, Subject, Verdict,
    Waiting,
};
pub use nono_supervisor::stage::Lease;
pub use rules::{Chain, PolicyFile, PolicyFileError};
pub use webhook::{Webhook, WebhookError, WebhookOptions};
