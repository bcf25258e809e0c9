//! Snapshots: `SnapshotManager` and its values, over the snapshot engine.

pub(crate) mod coverage;
mod engine_turns;
pub(crate) mod error;
mod exclusion;
mod manager;
mod manifest;
mod metadata;
pub(crate) mod names;
mod network;
mod restored;
pub(crate) mod values;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<values::ContentHash>()?;
    module.add_class::<values::FileState>()?;
    module.add_class::<values::Change>()?;
    module.add_class::<coverage::Coverage>()?;
    module.add_class::<exclusion::ExclusionConfig>()?;
    module.add_class::<manifest::SnapshotManifest>()?;
    module.add_class::<restored::RestoreReport>()?;
    module.add_class::<metadata::SessionMetadata>()?;
    module.add_class::<manager::SnapshotManager>()?;
    // Default on the class, for errors that are not about a restore.
    module.py().get_type::<crate::error::SnapshotError>().setattr("report", module.py().None())
}
