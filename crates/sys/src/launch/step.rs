//! Steps of the launch, and how a failure is reported to the parent.

use std::fmt;
use std::io;
use std::os::fd::RawFd;

use crate::raw::{Errno, last_errno};

/// Declares the steps once: the enum, the wire code and the text.
macro_rules! steps {
    ($($name:ident => $words:literal),+ $(,)?) => {
        /// One step of the launch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Step { $($name),+ }

        impl Step {
            const ALL: &'static [Step] = &[$(Step::$name),+];

            /// Text of the step, to be read after "could not".
            pub fn words(self) -> &'static str {
                match self { $(Step::$name => $words),+ }
            }
        }
    };
}

steps! {
    Fork => "start a process",
    Namespaces => "create the namespaces",
    MapIds => "map the user and group into the user namespace",
    MakePrivate => "make the mount namespace private",
    CloneTree => "prepare a writable grant",
    ReadOnly => "make the file system read-only",
    PlaceTree => "mount a writable grant",
    Mask => "close a path inside a grant",
    Watch => "watch the closed paths",
    Mount => "mount a private file system",
    Loopback => "bring up the loopback interface",
    Serve => "listen in the command's network",
    LateRule => "allow a private file system",
    Terminal => "set up the terminal",
    ForkCommand => "start the command's process",
    Limits => "set the resource limits",
    DropCapabilities => "drop all capabilities",
    DeathSignal => "tie the command's life to nono's",
    NoNewPrivs => "give up new privileges",
    Landlock => "enforce the Landlock rules",
    Seccomp => "install the system call filter",
    HandOver => "hand the trapped system calls over to the supervisor",
    WorkDir => "enter the working directory",
    Stdio => "connect standard input and output",
    CloseFds => "close inherited descriptors",
    Exec => "execute the program",
}

impl Step {
    fn from_code(code: i32) -> Step {
        usize::try_from(code).ok().and_then(|i| Step::ALL.get(i)).copied().unwrap_or(Step::Fork)
    }
}

/// Failed step: which, the index of the setup operation where that matters, and the kernel's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchError {
    pub step: Step,
    pub index: usize,
    pub errno: i32,
}

impl LaunchError {
    pub(crate) fn new(step: Step, errno: Errno) -> LaunchError {
        LaunchError { step, index: 0, errno }
    }

    pub(crate) fn io(step: Step, error: &io::Error) -> LaunchError {
        LaunchError::new(step, error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}", self.step.words(), crate::errno::text(self.errno))
    }
}

impl std::error::Error for LaunchError {}

/// Error of the child's functions: step, operation index, errno.
pub(crate) type Failure = (Step, usize, Errno);

/// Child side: one small write, atomic on a pipe.
pub(crate) fn write_report(fd: RawFd, failure: Failure) {
    let (step, index, errno) = failure;
    let words = [step as i32, i32::try_from(index).unwrap_or(i32::MAX), errno];
    // SAFETY: words is valid for its size. A failed write means the parent is gone; there is no other reader.
    unsafe { libc::write(fd, words.as_ptr().cast(), size_of_val(&words)) };
}

/// Parent side: blocks until exec closed the pipe (success) or a report came.
pub(crate) fn read_report(fd: RawFd) -> Result<(), LaunchError> {
    let mut words = [0i32; 3];
    loop {
        // SAFETY: words is valid for its size.
        let n = unsafe { libc::read(fd, words.as_mut_ptr().cast(), size_of_val(&words)) };
        match n {
            0 => return Ok(()),
            n if n < 0 && last_errno() == libc::EINTR => {}
            n if n < 0 => return Err(LaunchError::new(Step::Fork, last_errno())),
            _ => {
                let index = usize::try_from(words[1]).unwrap_or(0);
                return Err(LaunchError { step: Step::from_code(words[0]), index, errno: words[2] });
            }
        }
    }
}
