//! `ExclusionConfig`.

use nono::snapshot as engine;
use nono::snapshot::exclusion::LargePacks;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::list_args::many;

/// Rules for what snapshots exclude.
///
/// A pattern without ``/`` is the name of a file or folder; with ``/`` it is a part of the path below the tracked path.
/// Globs are on names. ``force_include`` is taken whatever the others say, also inside of what they leave out.
/// Nothing above a tracked path is ever looked at.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct ExclusionConfig {
    pub(crate) config: engine::ExclusionConfig,
}

#[pymethods]
impl ExclusionConfig {
    #[new]
    #[pyo3(signature = (use_gitignore=true, exclude_patterns=vec![], exclude_globs=vec![], force_include=vec![], *,
        artifacts=false, large_git_packs=false, max_ignored_folder=None),
        text_signature = "(use_gitignore=True, exclude_patterns=[], exclude_globs=[], force_include=[], *, \
        artifacts=False, large_git_packs=False, max_ignored_folder=None)")]
    fn new(
        use_gitignore: bool,
        #[pyo3(from_py_with = many)] exclude_patterns: Vec<String>,
        #[pyo3(from_py_with = many)] exclude_globs: Vec<String>,
        #[pyo3(from_py_with = many)] force_include: Vec<String>,
        artifacts: bool,
        large_git_packs: bool,
        max_ignored_folder: Option<u64>,
    ) -> ExclusionConfig {
        let large_git_packs = if large_git_packs { LargePacks::Take } else { LargePacks::LeaveOut };
        let config = engine::ExclusionConfig {
            use_gitignore,
            exclude_patterns,
            exclude_globs,
            force_include,
            artifacts,
            max_ignored_folder,
            max_repository: None,
            large_git_packs,
        };
        ExclusionConfig { config }
    }

    /// Whether git's ignore files count.
    #[getter]
    fn use_gitignore(&self) -> bool {
        self.config.use_gitignore
    }

    /// Names, or parts of paths.
    #[getter]
    fn exclude_patterns(&self) -> Vec<String> {
        self.config.exclude_patterns.clone()
    }

    /// Globs on names.
    #[getter]
    fn exclude_globs(&self) -> Vec<String> {
        self.config.exclude_globs.clone()
    }

    /// Names, or parts of paths, that are taken anyway.
    #[getter]
    fn force_include(&self) -> Vec<String> {
        self.config.force_include.clone()
    }

    /// Whether what tools make, and can make again, is left out.
    #[getter]
    fn artifacts(&self) -> bool {
        self.config.artifacts
    }

    /// Whether large packs of git are taken where copying them is costly.
    #[getter]
    fn large_git_packs(&self) -> bool {
        self.config.large_git_packs == LargePacks::Take
    }

    /// The size in bytes beyond which a folder that git ignores is left out, where `use_gitignore` is off.
    #[getter]
    fn max_ignored_folder(&self) -> Option<u64> {
        self.config.max_ignored_folder
    }

    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("use_gitignore", self.config.use_gitignore)?;
        dict.set_item("exclude_patterns", &self.config.exclude_patterns)?;
        dict.set_item("exclude_globs", &self.config.exclude_globs)?;
        dict.set_item("force_include", &self.config.force_include)?;
        dict.set_item("artifacts", self.config.artifacts)?;
        dict.set_item("large_git_packs", self.large_git_packs())?;
        dict.set_item("max_ignored_folder", self.config.max_ignored_folder)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!(
            "ExclusionConfig(gitignore={}, patterns={}, globs={})",
            self.config.use_gitignore,
            self.config.exclude_patterns.len(),
            self.config.exclude_globs.len()
        )
    }
}
