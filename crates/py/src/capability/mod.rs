//! Capabilities: grants, queries, their JSON, and confining this process.

pub(crate) mod access;
mod error;
pub(crate) mod grant;
pub(crate) mod query;
pub(crate) mod set;
pub(crate) mod state;
pub(crate) mod support;

pub(crate) use access::AccessMode;
pub(crate) use error::capability_error;
pub(crate) use grant::CapabilitySource;
pub(crate) use set::CapabilitySet;
