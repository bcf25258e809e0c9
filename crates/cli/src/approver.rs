//! Construction of the approver from `--approve`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono::approval::trusted::{self, Secrecy};
use nono::approval::webhook::{Secret, TIMEOUT};
use nono::approval::{ApprovalBackend, Chain, DenyAll, PolicyFile, Webhook, WebhookOptions};
use nono::session::Host;
use nono::{ResolvedPolicy, diagnostic};

use crate::args::{Approver, AskArgs, here};
use crate::failure::Failure;
use crate::prompt::TerminalBackend;

/// First argument of nono when it runs as the webhook helper.
pub(crate) const HELPER: &str = "__webhook";

const SECRET_VARIABLE: &str = "NONO_WEBHOOK_SECRET";
const MAX_SECRET: u64 = 4096;

/// Approver chosen by the flags. `policy`: the command's grants, which must not reach the files that decide about it.
pub(crate) fn backend(
    args: &AskArgs,
    host: &Host,
    policy: &ResolvedPolicy,
) -> Result<Arc<dyn ApprovalBackend>, Failure> {
    let mut files = Vec::new();
    let mut last = None;
    for (index, approver) in args.approve.iter().enumerate() {
        match approver {
            Approver::Policy(file) => files.push(policy_file(file, host, policy)?),
            other if index + 1 == args.approve.len() => last = Some(other),
            _ => {
                return Err(Failure::usage(
                    "--approve: only policy:FILE can be followed by another approver",
                ));
            }
        }
    }
    let is_webhook = matches!(last, Some(Approver::Webhook(_)));
    if args.approve_secret.is_some() && !is_webhook {
        return Err(Failure::usage("--approve-secret is for --approve webhook:URL"));
    }
    let last: Arc<dyn ApprovalBackend> = match last {
        Some(Approver::Webhook(url)) => Arc::new(webhook(url, args, host, policy)?),
        Some(Approver::Deny) => Arc::new(DenyAll),
        Some(Approver::Terminal | Approver::Policy(_)) | None => Arc::new(TerminalBackend::new(policy)),
    };
    // The first file is asked first, so it is put around all others last.
    Ok(files.into_iter().rev().fold(last, |next, file| Arc::new(Chain::new(file, next))))
}

/// Files that hold rules or the webhook's secret; the command must not reach them.
pub(crate) fn files(args: &AskArgs) -> Result<Vec<PathBuf>, Failure> {
    let here = here()?;
    let rules = args.approve.iter().filter_map(|approver| match approver {
        Approver::Policy(file) => Some(file),
        _ => None,
    });
    let named = rules.chain(&args.approve_secret).map(|file| here.join(file));
    Ok(named.map(|file| file.canonicalize().unwrap_or(file)).collect())
}

/// Loads a file of rules. A relative path is relative to the working directory.
pub(crate) fn policy_file(file: &Path, host: &Host, policy: &ResolvedPolicy) -> Result<PolicyFile, Failure> {
    PolicyFile::load(&here()?.join(file), host.context.home.as_deref(), policy)
        .map_err(|error| Failure::new(error.to_string()).hint_if(error.hint()))
}

fn webhook(url: &str, args: &AskArgs, host: &Host, policy: &ResolvedPolicy) -> Result<Webhook, Failure> {
    let binary = host.context.binary.as_ref();
    let binary = binary.ok_or_else(|| Failure::new("webhook: cannot find nono's own program file"))?;
    let certificates = host.env.iter().find(|(name, _)| name == "SSL_CERT_FILE");
    let options = WebhookOptions {
        url: url.to_owned(),
        secret: secret(args, host, policy)?,
        helper: vec![binary.clone().into_os_string(), OsString::from(HELPER)],
        timeout: TIMEOUT,
        certificates: certificates.map(|(_, file)| file.into()),
    };
    Webhook::start(options).map_err(|error| match error.hint() {
        Some(hint) => Failure::usage(error.to_string()).hint(hint),
        None => Failure::new(error.to_string()),
    })
}

fn secret(args: &AskArgs, host: &Host, policy: &ResolvedPolicy) -> Result<Secret, Failure> {
    let variable = || host.env.iter().find(|(name, _)| name == SECRET_VARIABLE);
    let (text, from) = match (&args.approve_secret, variable()) {
        (Some(file), _) => {
            let read = trusted::read(&here()?.join(file), policy, Secrecy::Secret, MAX_SECRET);
            let (text, file) = read
                .map_err(|error| Failure::new(format!("--approve-secret: {error}")).hint_if(error.hint()))?;
            (text, diagnostic::shown(&file))
        }
        (None, Some((_, value))) => (value.to_string_lossy().into_owned(), SECRET_VARIABLE.to_owned()),
        (None, None) => {
            return Err(Failure::usage("--approve webhook:URL needs a secret shared with the service")
                .hint(format!("add --approve-secret FILE, or set {SECRET_VARIABLE}")));
        }
    };
    Secret::new(&text).ok_or_else(|| {
        let least = Secret::SHORTEST;
        Failure::new(format!("{from}: the secret is shorter than {least} bytes"))
            .hint("make one: openssl rand -hex 32")
    })
}
