//! Recording of what a command does. Nothing is asked, granted or refused here: every recorded call goes on to the
//! kernel, which judges it by the rules of the start as if it were not trapped.
//!
//! A record says what a call meant when it was read. The command may change its arguments before the kernel reads them;
//! then the record is wrong, and nothing else is.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nono_policy::{AccessMode, SOME_NAME, is_within, query_path};
use nono_sys::notify::{self, Notification, PATH_MAX};
use rustix::fs::{Mode, OFlags};

use super::allow_table::{READ, WRITE};
use super::call::{OpenRequest, PathStart};
use super::call_effect::{CallEffect, PathArgument};
use super::emulate::{self, TrappedCall};
use super::job::{Open, OpenSource};
use super::pin_path::{self, Named, OpenTarget, PinnedKind, Resolved};
use super::shared::MediatorShared;
use crate::recorded::{PathObject, Reached, Recorded, Touched, Use};

/// Bounds of what is kept, whatever the command does.
const MOST_PATHS: usize = 20_000;
const MOST_BYTES: usize = 4 << 20;
const MOST_ADDRESSES: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct CallRecorder(Mutex<RecordBuffer>);

#[derive(Debug, Default)]
struct RecordBuffer {
    recorded: Recorded,
    /// Total length of all paths.
    bytes: usize,
}

impl CallRecorder {
    fn kept(&self) -> MutexGuard<'_, RecordBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn recorded(&self) -> Recorded {
        self.kept().recorded.clone()
    }

    /// Counts a call that could not be recorded for lack of time.
    pub(super) fn missed(&self) {
        self.kept().recorded.unrecorded += 1;
    }

    fn touch(&self, path: PathBuf, stands: PathObject, uses: &[Use], denied: bool) {
        let mut kept = self.kept();
        if !kept.recorded.touched.contains_key(&path) {
            let bytes = kept.bytes + path.as_os_str().len();
            if kept.recorded.touched.len() >= MOST_PATHS || bytes > MOST_BYTES {
                kept.recorded.unrecorded += 1;
                return;
            }
            kept.bytes = bytes;
        }
        let fresh = || Touched { stands, uses: [].into(), denied: [].into() };
        let touched = kept.recorded.touched.entry(path).or_insert_with(fresh);
        touched.uses.extend(uses);
        if denied {
            touched.denied.extend(uses);
        }
    }

    fn reach(&self, reached: Reached) {
        let recorded = &mut self.kept().recorded;
        if recorded.reached.len() < MOST_ADDRESSES || recorded.reached.contains_key(&reached) {
            *recorded.reached.entry(reached).or_default() += 1;
        } else {
            recorded.unrecorded += 1;
        }
    }

    fn bind(&self, port: u16) {
        let recorded = &mut self.kept().recorded;
        if recorded.bound.len() < MOST_ADDRESSES {
            recorded.bound.insert(port);
        }
    }
}

impl MediatorShared {
    pub(super) fn record_open(&self, recorder: &CallRecorder, open: &Open) {
        let OpenSource::Call { tid, .. } = &open.source else { return };
        let rights = open.how.rights();
        let mut uses = Vec::new();
        uses.extend((rights & READ != 0).then_some(Use::Read));
        uses.extend((rights & WRITE != 0).then_some(Use::Write));
        let target = match pin_path::resolve(self.root.as_fd(), *tid, open.start, &open.path, open.how) {
            Ok(Resolved::Target(target)) if open.is_wanted(&self.listener) => target,
            Ok(Resolved::Hidden) => {
                if let Some((path, _)) = self.behind_a_mask(open) {
                    let stands = if path.is_dir() { PathObject::Directory } else { PathObject::File };
                    recorder.touch(path, stands, &uses, true);
                }
                return;
            }
            // It does not exist, it is on /proc, or the caller does not wait for it any more.
            _ => return,
        };
        match &target {
            // An unnamed file is made in the directory.
            OpenTarget::There { path, kind: PinnedKind::Directory, .. } if open.how.has(libc::O_TMPFILE) => {
                self.record_names(recorder, path);
            }
            OpenTarget::There { path, kind, .. } => self.record_use(recorder, path, *kind, &uses),
            OpenTarget::Missing { folder_path, .. } => {
                self.record_names(recorder, folder_path);
                self.record_made(recorder, target.path(), PathObject::File, &uses);
            }
        }
    }

    /// Records a call that is trapped only for that; false if it is another call.
    pub(super) fn record_call(&self, call: &Notification) -> bool {
        let Some(recorder) = &self.recorder else { return false };
        if call.nr == libc::SYS_connect {
            let waits = || self.listener.is_valid(call.id);
            if let Some(reached) = emulate::reached(TrappedCall { notification: call, waits: &waits }) {
                recorder.reach(reached);
            }
            return false;
        }
        let Some(changes) = CallEffect::of(call) else { return false };
        for change in changes {
            self.record_change(recorder, call, change);
        }
        true
    }

    fn record_change(&self, recorder: &CallRecorder, call: &Notification, change: CallEffect) {
        match change {
            CallEffect::Start(at) => self.record_start(recorder, call, at),
            CallEffect::Truncate(at) => {
                let how = OpenRequest { flags: libc::O_WRONLY, mode: 0, resolve: 0 };
                if let Some(OpenTarget::There { path, kind, .. }) = self.followed(call, at, how) {
                    self.record_use(recorder, &path, kind, &[Use::Write]);
                }
            }
            CallEffect::Make { at, stands, over } => {
                if let Some(named) = self.named(call, at).filter(|named| over || !named.is_there) {
                    self.record_names(recorder, &named.folder);
                    self.record_made(recorder, named.path(), stands, &[Use::Write]);
                }
            }
            CallEffect::Remove(at) => {
                if let Some(named) = self.named(call, at).filter(|named| named.is_there) {
                    self.record_names(recorder, &named.folder);
                }
            }
            CallEffect::Bind => self.record_bind(recorder, call),
        }
    }

    fn record_bind(&self, recorder: &CallRecorder, call: &Notification) {
        let waits = || self.listener.is_valid(call.id);
        match emulate::bound(TrappedCall { notification: call, waits: &waits }) {
            Some(emulate::Bound::Port(port)) => recorder.bind(port),
            Some(emulate::Bound::Path(path)) => {
                use std::os::unix::ffi::OsStrExt;
                let path = path.as_os_str().as_bytes();
                let named =
                    pin_path::last_name(self.root.as_fd(), call.tid, PathStart::WorkingDirectory, path);
                if let Some(named) = named.filter(|named| !named.is_there) {
                    self.record_names(recorder, &named.folder);
                    self.record_made(recorder, named.path(), PathObject::Special, &[Use::Write]);
                }
            }
            None => {}
        }
    }

    /// Records the program, and the interpreter that its first line names, which the kernel opens by itself.
    fn record_start(&self, recorder: &CallRecorder, call: &Notification, at: PathArgument) {
        let how = OpenRequest { flags: libc::O_RDONLY, mode: 0, resolve: 0 };
        let mut next = self.followed(call, at, how);
        for _ in 0..MOST_INTERPRETERS {
            let Some(OpenTarget::There { pin, path, kind: PinnedKind::File, .. }) = next else { return };
            self.record_use(recorder, &path, PinnedKind::File, &[Use::Execute]);
            next =
                interpreter(&pin).and_then(|line| match pin_path::from_root(self.root.as_fd(), &line, how) {
                    Ok(Resolved::Target(target)) => Some(target),
                    _ => None,
                });
        }
    }

    fn followed(&self, call: &Notification, at: PathArgument, how: OpenRequest) -> Option<OpenTarget> {
        let path = self.path_of(call, at)?;
        match pin_path::resolve(self.root.as_fd(), call.tid, at.start, &path, how) {
            Ok(Resolved::Target(target)) => Some(target),
            _ => None,
        }
    }

    pub(super) fn named(&self, call: &Notification, at: PathArgument) -> Option<Named> {
        pin_path::last_name(self.root.as_fd(), call.tid, at.start, &self.path_of(call, at)?)
    }

    pub(super) fn path_of(&self, call: &Notification, at: PathArgument) -> Option<Vec<u8>> {
        let mut buffer = [0; PATH_MAX];
        let length = notify::read_path(call.tid, at.path, &mut buffer).ok()?;
        // The call still waits, so what was read was its thread's memory.
        self.listener.is_valid(call.id).then(|| buffer[..length].to_vec())
    }

    fn record_use(&self, recorder: &CallRecorder, path: &Path, kind: PinnedKind, uses: &[Use]) {
        let stands = match kind {
            PinnedKind::File => PathObject::File,
            PinnedKind::Directory => PathObject::Directory,
            PinnedKind::Special => PathObject::Special,
        };
        let access = if uses.contains(&Use::Write) { AccessMode::Write } else { AccessMode::Read };
        let access = if uses.contains(&Use::Read) { access.union(AccessMode::Read) } else { access };
        self.keep(recorder, path.to_owned(), stands, uses, self.denies(path, true, access));
    }

    /// Records that names in a directory were made or removed.
    fn record_names(&self, recorder: &CallRecorder, folder: &Path) {
        let denied = self.denies(&folder.join(SOME_NAME), false, AccessMode::Write);
        self.keep(recorder, folder.to_owned(), PathObject::Directory, &[Use::Names], denied);
    }

    fn record_made(&self, recorder: &CallRecorder, path: PathBuf, stands: PathObject, uses: &[Use]) {
        let denied = self.denies(&path, false, AccessMode::Write);
        let uses: Vec<Use> = uses.iter().copied().chain([Use::Made]).collect();
        self.keep(recorder, path, stands, &uses, denied);
    }

    fn denies(&self, path: &Path, exists: bool, access: AccessMode) -> bool {
        !query_path(&self.policy, path, exists, access).is_allowed()
    }

    /// Keeps a path, except on file systems private to the command, which no policy covers.
    fn keep(&self, recorder: &CallRecorder, path: PathBuf, stands: PathObject, uses: &[Use], denied: bool) {
        if !self.private.iter().any(|private| is_within(&path, private)) {
            recorder.touch(path, stands, uses, denied);
        }
    }
}

/// Maximum number of nested interpreters, as in the kernel.
const MOST_INTERPRETERS: usize = 5;

/// Path after `#!`.
fn interpreter(pin: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(pin_path::own_link(pin.as_fd()), flags, Mode::empty()).ok()?;
    let mut line = [0; 256];
    let read = std::fs::File::from(file).read(&mut line).ok()?;
    let line = line[..read].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    (name.first() == Some(&b'/')).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let recorder = CallRecorder::default();
        for n in 0..MOST_PATHS + 10 {
            recorder.touch(format!("/{n}").into(), PathObject::File, &[Use::Read], false);
        }
        recorder.touch("/0".into(), PathObject::File, &[Use::Write], true);
        for port in 0..2000 {
            recorder.reach(Reached { address: format!("a:{port}"), port, loopback: false });
            recorder.bind(port);
        }
        let recorded = recorder.recorded();
        assert_eq!(recorded.touched.len(), MOST_PATHS);
        assert_eq!(recorded.unrecorded, 10 + 1000);
        let first = &recorded.touched[Path::new("/0")];
        assert_eq!(first.uses, [Use::Read, Use::Write].into());
        assert_eq!(first.denied, [Use::Write].into());
        assert_eq!((recorded.reached.len(), recorded.bound.len()), (MOST_ADDRESSES, MOST_ADDRESSES));
        let long = CallRecorder::default();
        for n in 0..2000 {
            long.touch(format!("/{}/{n}", "x".repeat(4000)).into(), PathObject::File, &[Use::Read], false);
        }
        assert!(long.recorded().touched.len() < 1100 && long.recorded().unrecorded > 900);
    }

    #[test]
    fn the_first_line_names_the_interpreter() {
        let temp = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let path = temp.path().join("script");
            std::fs::write(&path, text).unwrap();
            let pin = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            interpreter(&pin).map(|name| String::from_utf8(name).unwrap())
        };
        assert_eq!(of("#! /usr/bin/env python3\nx"), Some("/usr/bin/env".to_owned()));
        assert_eq!(of("#!/bin/sh"), Some("/bin/sh".to_owned()));
        assert_eq!(of("echo"), None);
        assert_eq!(of("#!sh\n"), None);
        assert_eq!(of("#!\n/bin/sh"), None);
    }
}
