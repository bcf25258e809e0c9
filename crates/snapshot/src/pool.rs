//! A pool of threads for tasks that create more tasks. Last in, first out: a tree is walked depth first, so that few of
//! its directories are open at a time. No task waits for another, and nothing recurses.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Queue of tasks.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<PoolState<T>>,
    wake: Condvar,
}

#[derive(Debug)]
struct PoolState<T> {
    tasks: Vec<T>,
    /// Number of tasks that are queued or running.
    unfinished: usize,
    stopped: bool,
}

impl<T> Queue<T> {
    fn new(tasks: Vec<T>) -> Queue<T> {
        let unfinished = tasks.len();
        Queue { state: Mutex::new(PoolState { tasks, unfinished, stopped: false }), wake: Condvar::new() }
    }

    /// Lock the state. A panicked worker ends the others later; until then the state is consistent.
    fn lock(&self) -> MutexGuard<'_, PoolState<T>> {
        locked(&self.state)
    }

    pub(crate) fn push_all(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = self.lock();
        let before = state.tasks.len();
        state.tasks.extend(tasks);
        let added = state.tasks.len() - before;
        state.unfinished += added;
        drop(state);
        match added {
            0 => {}
            1 => self.wake.notify_one(),
            _ => self.wake.notify_all(),
        }
    }

    /// The next task; `None` when all are done, or after a stop.
    fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.unfinished == 0 {
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                return Some(task);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        let mut state = self.lock();
        state.unfinished -= 1;
        let last = state.unfinished == 0;
        drop(state);
        if last {
            self.wake.notify_all();
        }
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_all();
    }
}

/// Stops the other workers when its thread panics in a task.
struct StopOnPanic<'a, T>(&'a Queue<T>);

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Run `tasks`, and those that they create, with up to one thread for each of `workers`. Returns the workers, or the
/// first error; after an error no new task is started. If the system has no more threads (a fork bomb took them), the
/// existing ones do the work, at least the calling one.
pub(crate) fn run<T: Send, W: Send, E: Send>(
    workers: Vec<W>,
    tasks: Vec<T>,
    work: impl Fn(&mut W, T, &Queue<T>) -> Result<(), E> + Sync,
) -> Result<Vec<W>, E> {
    let queue = Queue::new(tasks);
    let one = |mut worker: W| {
        let _guard = StopOnPanic(&queue);
        while let Some(task) = queue.next() {
            if let Err(error) = work(&mut worker, task, &queue) {
                queue.stop();
                return Err(error);
            }
            queue.done();
        }
        Ok(worker)
    };
    let mut workers = workers.into_iter();
    let first = workers.next();
    // A worker must not be lost with a thread that does not start.
    let waiting = Mutex::new(workers.collect::<Vec<W>>());
    let take = || locked(&waiting).pop();
    let wanted = locked(&waiting).len();
    let results: Vec<Result<W, E>> = std::thread::scope(|scope| {
        let start = |_| spawn(scope, || take().map(one));
        let others: Vec<_> = (0..wanted).map_while(start).collect();
        let first = first.map(one);
        let others = others.into_iter().filter_map(join);
        // All threads are joined before the first error is returned.
        first.into_iter().chain(others).collect()
    });
    let idle = waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().chain(idle.into_iter().map(Ok)).collect()
}

/// Lock a mutex. What a thread that panicked left is consistent; the panic itself is passed on elsewhere.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Do the same work on two threads, the caller's and, if the system allows, another one, which gets `None`.
pub(crate) fn on_two_threads<W, E: Send>(
    watch: W,
    work: impl Fn(Option<W>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    std::thread::scope(|scope| {
        let other = spawn(scope, || work(None));
        let mine = work(Some(watch));
        let theirs = other.map_or(Ok(()), join);
        mine.and(theirs)
    })
}

/// Start a thread, if the system allows one more.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<std::thread::ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new().spawn_scoped(scope, work).ok()
}

/// Result of a thread; a panic is passed on to the caller.
pub(crate) fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Number of threads to use: all processors, but not so many that memory for their buffers matters.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_make_tasks_are_all_done() {
        let work = |sum: &mut u64, task: u64, queue: &Queue<u64>| -> Result<(), ()> {
            *sum += 1;
            if task > 0 {
                queue.push_all([task - 1, task - 1]);
            }
            Ok(())
        };
        let sums = run(vec![0; 3], vec![10], work).unwrap();
        assert_eq!(sums.iter().sum::<u64>(), (1 << 11) - 1);
    }

    #[test]
    fn the_first_error_ends_it() {
        let work = |(): &mut (), task: u64, queue: &Queue<u64>| {
            queue.push_all([task + 1]);
            if task == 1000 { Err(task) } else { Ok(()) }
        };
        assert_eq!(run(vec![(); 2], vec![0], work), Err(1000));
    }

    /// Run alone, in a separate process, because the limit counts a user's processes everywhere.
    #[test]
    fn without_threads_the_caller_does_all_of_it() {
        const INNER: &str = "NONO_POOL_INNER";
        let name = "pool::tests::without_threads_the_caller_does_all_of_it";
        if std::env::var_os(INNER).is_none() {
            return alone(name, INNER);
        }
        let started = std::thread::Builder::new().spawn(|| ()).is_ok();
        assert!(!started, "the limit does not count");
        let work = |done: &mut u64, task: u64, queue: &Queue<u64>| -> Result<(), ()> {
            *done += 1;
            queue.push_all((task > 0).then(|| task - 1));
            Ok(())
        };
        let done = run(vec![0; 4], vec![9], work).unwrap();
        assert_eq!((done.len(), done.iter().sum::<u64>()), (4, 10));
    }

    /// Run as an otherwise unused user, limited to one process of one thread: the harness runs one test in its own.
    fn alone(name: &str, inner: &str) {
        if !rustix::process::geteuid().is_root() {
            return nono_testkit::skip("another user is needed");
        }
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let program = dir.path().join("tests");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let id = nono_testkit::user::ALONE.to_string();
        std::fs::set_permissions(dir.path(), open).unwrap();
        let out = std::process::Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups", "prlimit", "--nproc=1"])
            .arg(&program)
            .args(["--exact", name, "--test-threads=1", "--nocapture"])
            .env(inner, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn an_empty_pool_finishes() {
        let work = |(): &mut (), (): (), _: &Queue<()>| Ok::<(), ()>(());
        assert_eq!(run(vec![(); 2], vec![], work), Ok(vec![(); 2]));
    }
}
