//! Approvers for access beyond the grants: a file of rules, a web service, or deny all.
//!
//! Question and trait are defined in [`nono_supervisor::approval`]. Everything but a clear approval is a denial.

pub mod rules;
pub mod trusted;
pub mod webhook;

pub use nono_supervisor::approval::{
    ApprovalAnswer, ApprovalBackend, ApprovalError, Asker, DenyAll, Object, Question, Scope, Subject,
    Verdict, Waiting,
};
pub use nono_supervisor::terminal_lease::Lease;
pub use rules::{Chain, PolicyFile, PolicyFileError};
pub use webhook::{Webhook, WebhookError, WebhookOptions};
