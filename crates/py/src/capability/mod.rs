//! Capabilities: grants, queries, their JSON, and confining this process.

mod access;
mod error;
mod grant;
mod query;
mod set;
mod state;
mod support;

use pyo3::prelude::*;

pub(crate) use error::capability_error;
pub(crate) use set::CapabilitySet;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<access::AccessMode>()?;
    module.add_class::<grant::CapabilitySource>()?;
    module.add_class::<grant::FsCapability>()?;
    module.add_class::<set::CapabilitySet>()?;
    module.add_class::<query::QueryContext>()?;
    module.add_class::<state::SandboxState>()?;
    module.add_class::<support::SupportInfo>()?;
    support::register(module)
}
