//! Everything of nono that talks to a network: the filtering proxy of a session in its own process, the same proxy as
//! a thread of another program, and the client of webhooks.
//!
//! [`network`] is the proxy of a session, from what was asked for to the summary after the run. [`proxy`] is the filter
//! inside the calling process. [`webhook`] is an approver that asks a web service. [`helper`] is what the processes
//! share that do the talking: a helper gets nothing but its messages, and confines itself before it hears from outside.

pub mod helper;
pub mod network;
pub mod proxy;
pub mod webhook;
