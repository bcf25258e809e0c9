//! Golden transcripts: the real binary, run by an ordinary user in a world of its own, and every word it says.
//!
//! `SNAPSHOTS=overwrite cargo test -p nono-cli --test cli golden::` rewrites the transcripts; read the diff before keeping it.
//! The user is this one, or `world::ORDINARY` where the suite runs as root. What a machine cannot try is said on
//! stderr as `skipped: why`, and fails where `CI=true`.
//!
//! In a transcript `$` is what was typed, `!` a line on stderr, `=` an exit code other than 0.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]
// Transcripts are long, and written with their hashes whether they need them or not; plain formatting is fast enough.
#![allow(clippy::too_many_lines)]
#![allow(clippy::needless_raw_string_hashes, clippy::format_collect, clippy::format_push_string)]

mod audit_kit;
mod checkpoints_kit;
mod sessions;
mod world;

mod agents;
mod approval;
mod audit;
mod audit_urls;
mod audit_verify;
mod bad_grants;
mod bad_input;
mod bad_state;
mod basics;
mod checkpoints_errors;
mod checkpoints_forget;
mod checkpoints_list;
mod checkpoints_restore;
mod checkpoints_sweep;
mod control;
mod diff;
mod dry_run;
mod environment;
mod fallback;
mod footer;
mod footer_asked;
mod footer_json;
mod generated;
mod grants;
mod help;
mod hooks;
mod learn;
mod limits;
mod nested;
mod profile_errors;
mod profile_init;
mod profiles;
mod protection;
mod request;
mod rollback_cleanup;
mod rollback_errors;
mod rollback_here;
mod rollback_list;
mod rollback_names;
mod rollback_recover;
mod rollback_repair;
mod rollback_restore;
mod rollback_show;
mod rollback_undo;
mod rollback_verify;
mod session_folder;
mod setup;
mod signals;
mod status;
mod streams;
mod why;
mod why_host;
mod why_json;

use crate::world::settled;
