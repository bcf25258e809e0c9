//! `ExclusionConfig`.

use nono::snapshot as engine;
use nono::snapshot::exclusion::LargePacks;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::list_args::many;
use crate::plain;

/// Rules for what snapshots exclude.
///
/// A pattern without ``/`` is the name of a file or folder; with ``/`` it is a part of the path below the tracked path.
/// Globs are on names. ``force_include`` is taken whatever the others say, also inside of what they leave out.
/// Nothing above a tracked path is ever looked at.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct ExclusionConfig {
    /// Whether git's ignore files count.
    use_gitignore: bool,
    /// Names, or parts of paths.
    exclude_patterns: Vec<String>,
    /// Globs on names.
    exclude_globs: Vec<String>,
    /// Names, or parts of paths, that are taken anyway.
    force_include: Vec<String>,
    /// Whether what tools make, and can make again, is left out.
    artifacts: bool,
    /// Whether large packs of git are taken where copying them is costly.
    large_git_packs: bool,
    /// The size in bytes beyond which a folder that git ignores is left out, where `use_gitignore` is off.
    max_ignored_folder: Option<u64>,
}

impl ExclusionConfig {
    pub(crate) fn config(&self) -> engine::ExclusionConfig {
        engine::ExclusionConfig {
            use_gitignore: self.use_gitignore,
            exclude_patterns: self.exclude_patterns.clone(),
            exclude_globs: self.exclude_globs.clone(),
            force_include: self.force_include.clone(),
            artifacts: self.artifacts,
            max_ignored_folder: self.max_ignored_folder,
            max_repository: None,
            large_git_packs: if self.large_git_packs { LargePacks::Take } else { LargePacks::LeaveOut },
        }
    }
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
        ExclusionConfig {
            use_gitignore,
            exclude_patterns,
            exclude_globs,
            force_include,
            artifacts,
            large_git_packs,
            max_ignored_folder,
        }
    }

    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "use_gitignore exclude_patterns exclude_globs force_include artifacts large_git_packs \
                     max_ignored_folder";
        plain::attributes(slf, names)
    }

    fn __repr__(&self) -> String {
        format!(
            "ExclusionConfig(gitignore={}, patterns={}, globs={})",
            self.use_gitignore,
            self.exclude_patterns.len(),
            self.exclude_globs.len()
        )
    }
}
