//! Detection of what this kernel can enforce.

use std::fmt;

use nono_sys::{errno, landlock, process, seccomp};
use serde::{Deserialize, Serialize};

use super::plan;

/// Whether the child can get namespaces of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespaces {
    /// Available; `user`: through a user namespace, otherwise because this process may administer mounts itself (root).
    Available {
        user: bool,
    },
    Missing {
        reason: String,
    },
    /// Missing because this process is inside a nono sandbox.
    Nested,
}

impl Namespaces {
    /// Reason why there are none; `None` where they are available.
    pub fn missing(&self) -> Option<&str> {
        match self {
            Namespaces::Available { .. } => None,
            Namespaces::Missing { reason } => Some(reason),
            Namespaces::Nested => Some("the outer nono sandbox allows none"),
        }
    }
}

/// Features of seccomp notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifySupport {
    /// Whether a received call waits for its answer through signals that do not kill (5.19).
    pub wait_killable: bool,
    /// Whether both sides take turns on one processor, which makes a trap three times faster (6.6).
    pub sync_wake_up: bool,
}

/// Facts about this kernel that decide how a policy is enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    pub kernel: String,
    /// Landlock ABI, or why there is none.
    pub landlock: Result<u32, String>,
    pub seccomp_notify: bool,
    /// Features of seccomp notification, or why it is not available.
    pub notify: Result<NotifySupport, String>,
    pub namespaces: Namespaces,
    /// Yama's `ptrace_scope`, where it exists.
    pub ptrace_scope: Option<u8>,
}

impl Support {
    /// Whether any policy can be enforced at all.
    pub fn is_supported(&self) -> bool {
        self.landlock.is_ok()
    }

    /// Reason seccomp notification is not available; empty where it is.
    pub(super) fn no_notify(&self) -> String {
        self.notify.as_ref().err().cloned().unwrap_or_default()
    }
}

/// Summary in one line.
impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let abi = match &self.landlock {
            Ok(abi) => *abi,
            Err(reason) => return write!(f, "the kernel has no Landlock ({reason})"),
        };
        write!(f, "Landlock V{abi}: files")?;
        // Each feature with the ABI that introduced it.
        for (since, what) in [
            (2, "renames across directories"),
            (3, "truncation"),
            (4, "TCP ports"),
            (5, "device ioctls"),
            (6, "signals and abstract sockets"),
            (7, "a log of denials"),
            (8, "all threads at once"),
        ] {
            if abi >= since {
                write!(f, ", {what}")?;
            }
        }
        f.write_str("; seccomp: filtered calls")?;
        if self.notify.is_ok() {
            f.write_str(", supervised calls")?;
        }
        match self.namespaces.missing() {
            None => f.write_str("; namespaces: available"),
            Some(reason) => write!(f, "; namespaces: none ({reason})"),
        }
    }
}

/// Whether any policy can be enforced at all. Forks nothing.
pub fn is_supported() -> bool {
    landlock::abi().is_ok()
}

/// Asks the kernel. Namespaces are tried for real, in a process that ends at once.
pub fn support() -> Support {
    Support { namespaces: try_namespaces(), notify: try_notify(), ..support_in_place() }
}

/// Whether seccomp notification works, tried for real in a process that ends at once.
pub fn try_notify() -> Result<NotifySupport, String> {
    match plan::try_listener() {
        Err(error) if error.errno == libc::EBUSY => {
            Err("another program already listens to this one's system calls".to_owned())
        }
        Err(error) => Err(error.to_string()),
        Ok(abilities) if !abilities.add_fd_and_send => {
            Err(format!("kernel {} is older than 5.14", process::kernel_release()))
        }
        Ok(abilities) => Ok(NotifySupport {
            wait_killable: process::kernel_at_least(5, 19) == Some(true),
            sync_wake_up: abilities.sync_wake_up,
        }),
    }
}

/// Facts about what a process can do to itself: everything but namespaces. Forks nothing.
pub(super) fn support_in_place() -> Support {
    Support {
        kernel: process::kernel_release(),
        landlock: landlock::abi().map_err(|error| landlock_reason(&error)),
        seccomp_notify: seccomp::notify_available(),
        notify: Err("a process cannot supervise itself".to_owned()),
        namespaces: Namespaces::Missing { reason: "a process cannot move itself into one".to_owned() },
        ptrace_scope: std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
    }
}

fn landlock_reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "it was built without it".to_owned(),
        Some(libc::EOPNOTSUPP) => "it is switched off at boot".to_owned(),
        _ => errno::describe(error),
    }
}

fn try_namespaces() -> Namespaces {
    let user = !process::has_sys_admin();
    match plan::try_namespaces(user) {
        Ok(()) => Namespaces::Available { user },
        // ENOSPC means a limit on namespaces, which may be zero.
        Err(error) if error.errno == libc::ENOSPC => {
            Namespaces::Missing { reason: "this machine allows no more user namespaces".to_owned() }
        }
        Err(error) => Namespaces::Missing { reason: format!("user namespaces do not work here: {error}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_there_is_and_what_is_not() {
        let bare = support_in_place();
        let old = Support { landlock: Ok(3), ..bare.clone() };
        let words = old.to_string();
        assert!(words.starts_with("Landlock V3: files, renames across directories, truncation; "), "{words}");
        assert!(
            !words.contains("TCP") && !words.contains("supervised") && words.contains("namespaces: none (")
        );
        let namespaces = Namespaces::Available { user: true };
        let notify = Ok(NotifySupport { wait_killable: true, sync_wake_up: true });
        let full = Support { landlock: Ok(7), namespaces, notify, ..bare.clone() }.to_string();
        assert!(
            full.contains("TCP ports") && full.ends_with("supervised calls; namespaces: available"),
            "{full}"
        );
        let none = Support { landlock: Err("it was built without it".into()), ..bare };
        assert_eq!(none.to_string(), "the kernel has no Landlock (it was built without it)");
    }
}
