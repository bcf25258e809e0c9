//! Which files a snapshot takes.
