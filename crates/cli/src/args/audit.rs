//! Arguments of `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use nono::audit::Digest;
use nono::snapshot::time::now_ms;

use super::{ConsentArgs, values};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// The recorded sessions, newest first
    #[command(after_help = super::after_help("audit list"))]
    List(AuditListArgs),
    /// Show the events of a session in order
    #[command(after_help = super::after_help("audit show"))]
    Show(AuditShowArgs),
    /// Check that the records were not changed
    #[command(after_help = super::after_help("audit verify"))]
    Verify(AuditVerifyArgs),
    /// Give the records to another program
    #[command(after_help = super::after_help("audit export"))]
    Export(ExportArgs),
    /// Remove old sessions; the ledger keeps that they were removed
    #[command(after_help = super::after_help("audit cleanup"))]
    Cleanup(ForgetArgs),
    /// Make a key that seals are signed with (`nono run --audit-sign-key FILE`)
    #[command(after_help = super::after_help("audit keygen"))]
    Keygen(KeygenArgs),
    /// Prove that one event was recorded, without giving the others away
    #[command(after_help = super::after_help("audit prove"))]
    Prove(ProveArgs),
    /// Check such a proof
    #[command(after_help = super::after_help("audit check-proof"))]
    CheckProof(CheckProofArgs),
}

/// Filter on events. An event must match every flag given.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Not before this time: 2026-08-01, 2026-08-01T10:15, or an age: 30m, 2h, 3d. Your time zone, unless Z or +02:00
    /// follows
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) since: Option<u64>,
    /// Not after this time
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) until: Option<u64>,
    /// Only events about this path, or something below it
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Only what was allowed, or what was denied
    #[arg(long, value_enum)]
    pub(crate) decision: Option<AuditAnswer>,
    /// Only connections to this host, or to a subdomain of it
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AuditAnswer {
    Allowed,
    Denied,
}

#[derive(Debug, Args)]
pub(crate) struct AuditListArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only sessions with this text in their command
    #[arg(long, value_name = "TEXT")]
    pub(crate) command: Option<String>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditShowArgs {
    /// A session: its id, the beginning of one, its name, or `last`
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Answer as JSON, with everything that was recorded
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// A session: its id, the beginning of one, its name, or `last`; all if none is given
    #[arg(value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Every session and the ledger, as without an ID
    #[arg(long, conflicts_with = "session")]
    pub(crate) all: bool,
    /// Require seals signed by this key
    #[arg(long, value_name = "FILE")]
    pub(crate) public_key: Option<PathBuf>,
    /// Require that this digest is the ledger's head, or was at an earlier time
    #[arg(long, value_name = "HASH", value_parser = digest)]
    pub(crate) ledger_head: Option<Digest>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Sessions: ids, beginnings of them, names, or `last`; all if none is given
    #[arg(value_name = "ID")]
    pub(crate) sessions: Vec<String>,
    /// One JSON object a line, a table, or OpenTelemetry's logs
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    Csv,
    OtlpJson,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true).args(["keep", "older_than", "all"])))]
pub(crate) struct ForgetArgs {
    /// Keep the newest N sessions
    #[arg(long, value_name = "N", value_parser = values::number::<usize>, conflicts_with = "all")]
    pub(crate) keep: Option<usize>,
    /// Remove sessions that are older than this many days
    #[arg(long, value_name = "DAYS", value_parser = values::number::<u32>, conflicts_with = "all")]
    pub(crate) older_than: Option<u32>,
    /// Remove every session that is not running
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// Where the private key goes; audit/signing.key in nono's own folder if none is given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    /// A session: its id, the beginning of one, its name, or `last`
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// The number of the record, from 0, as `audit show` has it
    #[arg(value_name = "SEQ", value_parser = values::number::<u64>)]
    pub(crate) sequence: u64,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("against").multiple(true).args(["root", "session", "public_key"])))]
pub(crate) struct CheckProofArgs {
    /// The proof
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Require that the proof leads to this root
    #[arg(long, value_name = "HASH", value_parser = digest)]
    pub(crate) root: Option<Digest>,
    /// Require that the proof leads to the root of this session, as stored here
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Require a seal signed by this key
    #[arg(long, value_name = "FILE")]
    pub(crate) public_key: Option<PathBuf>,
}

fn moment(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a time: write 2026-08-01, 2026-08-01T10:15, or 30m, 2h, 3d");
    nono::audit::moment(text, now_ms(), crate::age::ZONE).ok_or_else(wrong)
}

fn digest(text: &str) -> Result<Digest, &'static str> {
    Digest::try_from(text.to_ascii_lowercase())
}
