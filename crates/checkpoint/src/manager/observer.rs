//! Progress observer shared by all operations, each of which has a manager of its own in the engine; and the recorder of
//! completed restores.

use std::fmt;
use std::sync::Arc;

use nono_snapshot::Observer;

use super::Completed;

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

    fn changing(&self) {
        self.0.changing();
    }
}

type Record = dyn Fn(&Completed) -> Option<String> + Send + Sync;

pub(super) struct Recorder(Box<Record>);

impl Recorder {
    pub(super) fn new(record: impl Fn(&Completed) -> Option<String> + Send + Sync + 'static) -> Recorder {
        Recorder(Box::new(record))
    }

    pub(super) fn record(&self, completed: &Completed) -> Option<String> {
        (self.0)(completed)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}
