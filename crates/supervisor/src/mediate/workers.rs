//! Threads that act with the command's rights: without capabilities, and with a umask of their own.
//!
//! They are started while the command is being set up, when there is nothing else to do, and get their work once it is
//! known. Those that never get any end when the rest is dropped.

use std::io;
use std::sync::mpsc::{Receiver as Inbox, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use nono_sys::launch::drop_capabilities;
use nono_sys::process::own_umask;

type WorkerJob = Box<dyn FnOnce() + Send>;

pub(crate) struct Workers {
    workers: Vec<Worker>,
}

struct Worker {
    name: &'static str,
    thread: JoinHandle<()>,
    prepared: Inbox<io::Result<()>>,
    /// Present until it has work.
    work: Option<SyncSender<WorkerJob>>,
}

impl Workers {
    /// Starts a thread for each name, which waits for its work.
    pub(crate) fn start(names: &[&'static str]) -> io::Result<Workers> {
        let workers = names.iter().map(|name| Worker::start(name)).collect::<io::Result<_>>()?;
        Ok(Workers { workers })
    }

    /// Gives work to a thread of this name that has none.
    pub(super) fn give(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut named = self.workers.iter_mut().filter(|worker| worker.name == name);
        let work_of = named.find_map(|worker| worker.work.take());
        // Either is a bug, or the thread could not prepare itself.
        let sent = work_of.and_then(|to| to.send(Box::new(work)).ok());
        sent.ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Waits until all of them are prepared, and so at work.
    pub(super) fn wait(self) -> io::Result<Vec<JoinHandle<()>>> {
        let ready = |worker: Worker| {
            worker.prepared.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
            Ok(worker.thread)
        };
        self.workers.into_iter().map(ready).collect()
    }
}

impl Worker {
    fn start(name: &'static str) -> io::Result<Worker> {
        let (ready, prepared) = sync_channel(1);
        let (work, inbox) = sync_channel::<WorkerJob>(1);
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let done = drop_capabilities().and_then(|()| own_umask());
            let fine = done.is_ok();
            // The starting thread waits for it, or has given up.
            let _ = ready.send(done);
            if fine && let Ok(work) = inbox.recv() {
                work();
            }
        })?;
        Ok(Worker { name, thread, prepared, work: Some(work) })
    }
}
