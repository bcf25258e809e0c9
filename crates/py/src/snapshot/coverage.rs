//! Coverage of a snapshot.

use nono::snapshot as engine;
use nono::snapshot::{CoverageNote, LeftOut};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::names::Names;
use crate::{plain, render};

/// The coverage of a snapshot: what it holds and does not hold, in numbers and examples.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    coverage: engine::Coverage,
}

impl Coverage {
    pub(crate) fn new(mut coverage: engine::Coverage, names: &Names) -> Coverage {
        for example in coverage.left_out.iter_mut().flat_map(|left_out| &mut left_out.examples) {
            example.path = names.given(std::mem::take(&mut example.path));
        }
        Coverage { coverage }
    }

    fn cause(left_out: &LeftOut) -> String {
        serde_json::to_value(left_out.cause)
            .ok()
            .and_then(|cause| Some(cause.as_str()?.to_owned()))
            .unwrap_or_default()
    }
}

#[pymethods]
impl Coverage {
    /// Regular files in the snapshot.
    #[getter]
    fn files(&self) -> u64 {
        self.coverage.files
    }

    /// Bytes in them.
    #[getter]
    fn bytes(&self) -> u64 {
        self.coverage.bytes
    }

    /// Directories in the snapshot.
    #[getter]
    fn directories(&self) -> u64 {
        self.coverage.directories
    }

    /// Links, FIFOs, sockets and devices in the snapshot.
    #[getter]
    fn others(&self) -> u64 {
        self.coverage.others
    }

    /// Names that were left out; a directory counts once, with everything in it.
    #[getter]
    fn entries_left_out(&self) -> u64 {
        self.coverage.entries_left_out()
    }

    /// Excluded paths by cause: dicts of cause, entries, directories, examples (dicts of path and reason).
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.coverage.left_out)
    }

    /// Further notes: a tracked path that does not exist, ignore rules that were not applied.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.coverage.notes.iter().map(ToString::to_string).collect()
    }

    /// Whether every tracked path is in it, and nothing but nono's own state was left out.
    #[getter]
    fn is_complete(&self) -> bool {
        let own = |left_out: &LeftOut| left_out.cause == engine::Cause::OwnState;
        let failed = |note: &CoverageNote| matches!(note, CoverageNote::RootFailed { .. });
        self.coverage.left_out.iter().all(own) && !self.coverage.notes.iter().any(failed)
    }

    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "files bytes directories others left_out notes")
    }

    fn __repr__(&self) -> String {
        let Coverage { coverage } = self;
        format!(
            "Coverage(files={}, bytes={}, left_out={})",
            coverage.files,
            coverage.bytes,
            coverage.entries_left_out()
        )
    }

    fn __str__(&self) -> String {
        let Coverage { coverage } = self;
        let mut text = format!(
            "{} files ({} bytes) in {} directories",
            coverage.files, coverage.bytes, coverage.directories
        );
        if coverage.entries_left_out() > 0 {
            text = format!("{text}; {} left out", coverage.entries_left_out());
        }
        coverage.notes.iter().fold(text, |text, note| format!("{text}; {note}"))
    }

    fn _repr_html_(&self) -> String {
        let examples = |left_out: &LeftOut| {
            let all = left_out.examples.iter();
            all.map(|example| format!("{}: {}", example.path.display(), example.reason)).collect::<Vec<_>>()
        };
        let rows = self.coverage.left_out.iter().map(|left_out| {
            vec![Coverage::cause(left_out), left_out.entries.to_string(), examples(left_out).join("; ")]
        });
        let table = render::table(&["left out", "entries", "for example"], rows);
        format!("<p>{}</p>{table}", render::escape_html(&self.__str__()))
    }
}
