//! Environment of this process, as Python sees it.

use std::ffi::OsString;
use std::path::PathBuf;

use nono::exec::ExecHost;
use pyo3::prelude::*;

/// The variables of this process. Asked of Python: the C library's own copy may change under a reader.
pub(crate) struct Environment {
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl Environment {
    pub(crate) fn read(py: Python<'_>) -> PyResult<Environment> {
        let environ = py.import("os")?.getattr("environ")?;
        let items = environ.call_method0("items")?;
        let variables = items.try_iter()?.map(|item| item?.extract()).collect::<PyResult<_>>()?;
        Ok(Environment { variables })
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// A variable that has to be an absolute path to count.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    pub(super) fn host(&self) -> ExecHost {
        let cap_file = self.absolute("NONO_CAP_FILE").filter(|path| path.is_file());
        let cap_file = cap_file.filter(|_| nono::session::is_confined());
        // Inside a sandbox only its own folder is sure to be writable.
        let own = cap_file.as_ref().and_then(|file| Some(file.parent()?.join("tmp")));
        let temp = own.or_else(|| self.absolute("TMPDIR")).unwrap_or_else(|| "/tmp".into());
        let temp = temp.canonicalize().unwrap_or(temp);
        ExecHost {
            // A missing one is an error where it is needed.
            cwd: std::env::current_dir().unwrap_or_else(|_| ".".into()),
            path: self.get("PATH").cloned(),
            session_base: temp.join(format!("nono-{}", nono::session::user_id())),
            state_dir: self.absolute("NONO_HOME").or_else(|| Some(self.absolute("HOME")?.join(".nono"))),
            nested: cap_file.is_some(),
        }
    }
}
