//! Part of `nono why` about a policy file: which rule would answer if the command asked.

use std::path::Path;

use nono::approval::PolicyFile;
use nono::approval::rules::{ApprovalRule, RuleAction, Ruling};
use nono::diagnostic::{escape, shown};
use nono::session::Host;
use nono::{AccessMode, DeniedReason, QueryResult, ResolvedPolicy};
use serde_json::{Value, json};

use crate::approver;
use crate::args::{Approver, here};
use crate::failure::Failure;

/// Query: a path, the access, and the result of the base policy.
pub(super) struct WhyQuestion<'a> {
    pub(super) path: &'a Path,
    pub(super) op: AccessMode,
    pub(super) result: &'a QueryResult,
}

/// Text and JSON about the rule. None if the base policy allows the access, so that no approver is asked.
pub(super) fn explain(
    approver: &Approver,
    host: &Host,
    policy: &ResolvedPolicy,
    asked: &WhyQuestion<'_>,
) -> Result<Option<(String, Value)>, Failure> {
    let Approver::Policy(file) = approver else {
        return Err(Failure::usage(
            "why: --approve accepts only policy:FILE, since other answers are not known beforehand",
        ));
    };
    let file = approver::policy_file(file, host, policy)?;
    let QueryResult::Denied { reason, .. } = asked.result else { return Ok(None) };
    if is_final(reason) {
        let text = "with --ask: no answer can open it, since it is closed by name";
        return Ok(Some((text.to_owned(), json!({"asked": false}))));
    }
    let ruling = file.explain(&here()?.join(asked.path), asked.op);
    Ok(Some((text(&file, &ruling), as_json(&file, &ruling))))
}

/// Whether it is closed by name, so that no approval can open it.
fn is_final(reason: &DeniedReason) -> bool {
    !matches!(
        reason,
        DeniedReason::NotGranted
            | DeniedReason::InsufficientAccess { .. }
            | DeniedReason::CarvedDirectory { .. }
    )
}

fn text(file: &PolicyFile, ruling: &Ruling<'_>) -> String {
    let mut lines = Vec::new();
    for rule in &ruling.expired {
        let when = escape(rule.expires().unwrap_or_default());
        lines.push(format!("with --ask: {} is skipped, since it expired at {when}", name(file, rule)));
    }
    for rule in &ruling.depends {
        let program = escape(rule.program().unwrap_or_default());
        lines.push(format!("with --ask, for {program}: {}, by {}", rule.action, reasoned(file, rule)));
    }
    lines.push(match ruling.rule {
        Some(rule) => format!("with --ask: {}, by {}", ruling.action, reasoned(file, rule)),
        None => {
            format!("with --ask: no rule of {} matches, so the next approver is asked", shown(file.path()))
        }
    });
    lines.extend(ruling.narrowed_by.map(|rule| {
        format!("note: this does not cover the whole directory, because of {}", name(file, rule))
    }));
    lines.join("\n")
}

fn name(file: &PolicyFile, rule: &ApprovalRule) -> String {
    escape(&file.name_of(rule))
}

fn reasoned(file: &PolicyFile, rule: &ApprovalRule) -> String {
    let reason = rule.reason.as_ref().map(|reason| format!(": {}", escape(reason)));
    format!("{}{}", name(file, rule), reason.unwrap_or_default())
}

fn as_json(file: &PolicyFile, ruling: &Ruling<'_>) -> Value {
    let list = |rules: &[&ApprovalRule]| {
        rules.iter().map(|rule| rule_json(file, rule, rule.action)).collect::<Vec<_>>()
    };
    json!({
        "asked": true,
        "action": action_json(ruling.action),
        "rule": ruling.rule.map(|rule| rule_json(file, rule, ruling.action)),
        "expired": list(&ruling.expired),
        "by_program": list(&ruling.depends),
        "narrowed_by": ruling.narrowed_by.map(|rule| rule_json(file, rule, rule.action)),
    })
}

fn action_json(action: RuleAction) -> Value {
    json!(match action {
        RuleAction::Allow(_) => "allow",
        RuleAction::Deny => "deny",
        RuleAction::Ask => "ask",
    })
}

fn rule_json(file: &PolicyFile, rule: &ApprovalRule, action: RuleAction) -> Value {
    let scope = match action {
        RuleAction::Allow(scope) => Some(scope),
        RuleAction::Deny | RuleAction::Ask => None,
    };
    json!({
        "name": file.name_of(rule),
        "number": rule.number,
        "line": rule.line,
        "path": rule.path(),
        "program": rule.program(),
        "action": action_json(action),
        "scope": scope,
        "expires": rule.expires(),
        "reason": rule.reason,
    })
}
