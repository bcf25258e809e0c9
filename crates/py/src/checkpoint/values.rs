//! Results of taking checkpoints, and reports about them.

use std::path::Path;

use nono::checkpoints::{
    Checkpoint, Ensured, HoldingEverywhere, Legacy, PurgedEverywhere, RestoreNote, json as shapes,
};
use nono::json::path as path_shape;
use pyo3::prelude::*;
use serde_json::json;

use super::error;
use crate::plain::{Extra, Record};
use crate::snapshot::coverage;
use crate::snapshot::names::Names;

pub(super) fn checkpoint(one: &Checkpoint) -> Record {
    Record::new("Checkpoint", shapes::checkpoint(one))
}

pub(super) fn ensured(ensured: Ensured) -> Record {
    let record = Record::new("CheckpointResult", shapes::ensured(&ensured));
    match ensured {
        Ensured::Taken { coverage, .. } => {
            // Tracked paths have no other names here.
            record.with("coverage", Extra::Record(coverage::record(coverage, &Names::default())))
        }
        Ensured::Skipped { .. } => record,
        Ensured::Failed { error, .. } => record.with("error", Extra::Raised(error::failed(&error))),
    }
}

/// Result for a checkpoint that could not even be tried.
pub(super) fn refused(dir: &Path, error: PyErr) -> Record {
    let data = json!({"result": "failed", "project": path_shape(dir), "why": error.to_string()});
    Record::new("CheckpointResult", data).with("error", Extra::Raised(error))
}

pub(super) fn note(note: &RestoreNote) -> Record {
    let mut data = json!(note);
    data["project"] = path_shape(&note.project);
    Record::new("CheckpointNote", data)
}

pub(super) fn archives(all: &[Legacy]) -> Vec<(String, u64)> {
    all.iter().map(|one| (one.name(), one.bytes)).collect()
}

pub(super) fn forgotten(everywhere: &PurgedEverywhere) -> Record {
    Record::new("ForgetReport", shapes::purged_everywhere(everywhere))
}

pub(super) fn holding(everywhere: &HoldingEverywhere) -> Record {
    let holding = &everywhere.checkpoints;
    let snapshots = (holding.checkpoints.len() as u64).saturating_add(holding.others);
    Record::new("ForgetReport", shapes::holding_everywhere(everywhere))
        .with("snapshots", Extra::Json(snapshots.into()))
}
