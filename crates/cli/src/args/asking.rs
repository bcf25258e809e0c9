//! Flags of `run` and `shell` about approvals while the command runs.

use std::path::PathBuf;

use clap::Args;

use super::first_given;

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Ask when the command wants more than it was granted, instead of refusing
    #[arg(long = "ask", visible_alias = "capability-elevation", help_heading = "Asking")]
    pub(crate) capability_elevation: bool,
    /// Who answers: terminal, policy:FILE, webhook:URL or deny. Repeatable: after policy files the next one is asked
    #[arg(long, value_name = "WHO", value_parser = approver, help_heading = "Asking")]
    pub(crate) approve: Vec<Approver>,
    /// The secret shared with the webhook; only you may read it
    #[arg(long, value_name = "FILE", help_heading = "Asking")]
    pub(crate) approve_secret: Option<PathBuf>,
    /// Let the command have web addresses opened in your browser; you are asked each time
    #[arg(long, help_heading = "Asking")]
    pub(crate) open_url: bool,
    /// Go on where this kernel cannot keep a guarantee
    #[arg(long, help_heading = "Asking")]
    pub(crate) accept_weaker: bool,
}

/// Approver named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Approver {
    Terminal,
    Policy(PathBuf),
    Webhook(String),
    Deny,
}

pub(super) fn approver(text: &str) -> Result<Approver, &'static str> {
    match text.split_once(':') {
        Some(("policy", file)) if !file.is_empty() => Ok(Approver::Policy(file.into())),
        Some(("webhook", url)) if !url.is_empty() => Ok(Approver::Webhook(url.to_owned())),
        None if text == "terminal" => Ok(Approver::Terminal),
        None if text == "deny" => Ok(Approver::Deny),
        _ => Err("write terminal, policy:FILE, webhook:URL or deny"),
    }
}

impl AskArgs {
    /// Whether something in these flags may be secret: an address with a key in it.
    pub(crate) fn is_secret(&self) -> bool {
        self.approve.iter().any(|approver| matches!(approver, Approver::Webhook(_)))
    }

    /// Name of the first of these flags that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        first_given([
            ("--ask", self.capability_elevation),
            ("--approve", !self.approve.is_empty()),
            ("--approve-secret", self.approve_secret.is_some()),
        ])
    }

    /// First given flag that needs a supervisor: those of [`AskArgs::given`] and `--open-url`.
    pub(crate) fn needs_supervisor(&self) -> Option<&'static str> {
        self.given().or(self.open_url.then_some("--open-url"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_is_read() {
        assert_eq!(approver("terminal"), Ok(Approver::Terminal));
        assert_eq!(approver("policy:/a:b"), Ok(Approver::Policy("/a:b".into())));
        assert_eq!(approver("webhook:https://a/b"), Ok(Approver::Webhook("https://a/b".to_owned())));
        assert_eq!(approver("deny"), Ok(Approver::Deny));
        for wrong in ["", "policy", "policy:", "webhook:", "Terminal", "terminal:", "deny:x"] {
            assert!(approver(wrong).is_err(), "{wrong}");
        }
    }
}
