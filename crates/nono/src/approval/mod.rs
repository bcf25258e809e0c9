//! Approvers for access beyond the grants: a file of rules, a web service, or deny all.
//!
//! Question and trait are defined in [`nono_supervisor::approval`]. Everything but a clear approval is a denial.

pub mod rules;

pub use nono_egress::webhook::{self, Webhook, WebhookError, WebhookOptions};
pub use nono_supervisor::approval::{
    ApprovalAnswer, ApprovalBackend, ApprovalError, Asker, DenyAll, Object, Question, Scope, Subject,
    Verdict, Waiting,
};
pub use nono_supervisor::terminal_lease::Lease;
pub use nono_supervisor::trusted;
pub use rules::{Chain, PolicyFile, PolicyFileError};
