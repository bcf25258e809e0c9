//! The content store.
