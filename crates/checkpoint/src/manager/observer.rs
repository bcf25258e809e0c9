//! Progress observer shared by all operations, each of which has a manager of its own in the engine.

use std::fmt;
use std::sync::Arc;

use nono_snapshot::Observer;

#[derive(Clone)]
pub(crate) struct Watcher(Arc<dyn Observer + Send>);

impl Watcher {
    pub(super) fn new(observer: impl Observer + Send + 'static) -> Watcher {
        Watcher(Arc::new(observer))
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl Observer for Watcher {
    fn progress(&self, done: u64, total: u64) {
        self.0.progress(done, total);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
