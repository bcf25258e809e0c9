//! Conversion of paths between Python and the library: `str`, `os.PathLike`, any bytes, and a leading `~`.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// A path as an argument: `str` or anything with `__fspath__`; a leading `~` is the home folder.
#[derive(Clone, Debug)]
pub(crate) struct PathArg(pub(crate) PathBuf);

impl<'a, 'py> FromPyObject<'a, 'py> for PathArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<PathArg> {
        let path: PathBuf = object.extract()?;
        if path.as_os_str().as_encoded_bytes().first() != Some(&b'~') {
            return Ok(PathArg(path));
        }
        // Python resolves `~name`, and has the current HOME.
        let expand = object.py().import("os.path")?.getattr("expanduser")?;
        Ok(PathArg(expand.call1((to_python(object.py(), &path),))?.extract()?))
    }
}

impl From<PathArg> for PathBuf {
    fn from(path: PathArg) -> PathBuf {
        path.0
    }
}

/// A path that Python gets as `str`, with surrogates for bytes that are not UTF-8.
#[derive(Clone, Debug)]
pub(crate) struct PathText(pub(crate) PathBuf);

impl<'py> IntoPyObject<'py> for &PathText {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(to_python(py, &self.0))
    }
}

impl<'py> IntoPyObject<'py> for PathText {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        (&self).into_pyobject(py)
    }
}

pub(crate) fn texts(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<PathText> {
    paths.into_iter().map(|path| PathText(path.as_ref().to_owned())).collect()
}

/// Path as Python writes it: `str`, with surrogates for bytes that are not UTF-8.
pub(crate) fn to_python<'py>(py: Python<'py>, path: &Path) -> Bound<'py, PyString> {
    os_str(py, path.as_os_str())
}

pub(crate) fn os_str<'py>(py: Python<'py>, text: &OsStr) -> Bound<'py, PyString> {
    match text.into_pyobject(py) {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

/// Concatenation of texts, with surrogates kept.
pub(crate) fn join<'py>(py: Python<'py>, pieces: &[Bound<'py, PyString>]) -> PyResult<Bound<'py, PyString>> {
    let joined = PyString::new(py, "").call_method1("join", (PyTuple::new(py, pieces)?,))?;
    Ok(joined.cast_into::<PyString>()?)
}
