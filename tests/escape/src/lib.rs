//! Hostile children against the real `nono` binary; everything is in `tests/`.
