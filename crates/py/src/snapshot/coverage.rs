//! Coverage of a snapshot.

use nono::snapshot::{Cause, Coverage, CoverageNote, LeftOut};
use serde_json::json;

use super::names::Names;
use crate::plain::{Extra, Record};

pub(crate) fn record(mut coverage: Coverage, names: &Names) -> Record {
    for example in coverage.left_out.iter_mut().flat_map(|left_out| &mut left_out.examples) {
        example.path = names.given(std::mem::take(&mut example.path));
    }
    let own = |left_out: &LeftOut| left_out.cause == Cause::OwnState;
    let failed = |note: &CoverageNote| matches!(note, CoverageNote::RootFailed { .. });
    let is_complete = coverage.left_out.iter().all(own) && !coverage.notes.iter().any(failed);
    let data = json!({
        "files": coverage.files,
        "bytes": coverage.bytes,
        "directories": coverage.directories,
        "others": coverage.others,
        "left_out": coverage.left_out,
        "notes": coverage.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    Record::new("Coverage", data).with("is_complete", Extra::Json(is_complete.into()))
}
