//! `nono request`: asks for more access from inside a sandbox.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nono::AccessMode;
use nono::diagnostic::{escape, shown};
use nono::request::{self, FileRequestAnswer, Wait};
use serde_json::{Value, json};

use crate::args::{RequestArgs, here};
use crate::failure::{Failure, NOT_DONE, NOT_EXECUTABLE, NOT_FOUND, words};
use crate::host::request_socket;
use crate::message;

/// Descriptor number of the granted file in the command.
const NUMBER: i32 = 3;

pub(crate) fn request(args: &RequestArgs) -> Result<u8, Failure> {
    let socket = request_socket().ok_or_else(|| {
        Failure::new(
            "request works only inside a supervised nono sandbox (NONO_REQUEST_SOCK names no socket)",
        )
        .hint("`nono run` has a supervisor to ask; `nono wrap` and --monitor have none")
    })?;
    let (path, access) =
        args.wanted().ok_or_else(|| Failure::usage("request needs --read, --write or --allow"))?;
    let path = here()?.join(path);
    let answer = request::ask_for(&socket, &path, access, args.reason.as_deref(), Wait::default())?;
    let granted = !matches!(answer, FileRequestAnswer::Denied { .. });
    if args.json {
        message::answer_json(&value(&path, access, &answer))?;
        return Ok(if granted { 0 } else { NOT_DONE });
    }
    match answer {
        FileRequestAnswer::Denied { by, reason } => {
            let by = by.map_or_else(String::new, |by| format!(" by {}", escape(&by)));
            message::line(&format!("denied{by}: {access} {}: {}", shown(&path), escape(&reason)));
            Ok(NOT_DONE)
        }
        FileRequestAnswer::Granted { fd, .. } => hand_over(args, fd, &path, access),
        FileRequestAnswer::AlreadyOpen => hand_over(args, request::open(&path, access)?, &path, access),
    }
}

/// Passes the granted file on: to the command as a descriptor, or its content to stdout.
fn hand_over(args: &RequestArgs, fd: OwnedFd, path: &Path, access: AccessMode) -> Result<u8, Failure> {
    if let Some((program, rest)) = args.command.split_first() {
        request::hand_down(fd, NUMBER)?;
        let error = Command::new(program).args(rest).env("NONO_FD", NUMBER.to_string()).exec();
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        return Err(Failure::new(format!("{}: {}", shown(Path::new(program)), words(&error))).code(code));
    }
    let mut file = File::from(fd);
    let is_dir = file.metadata()?.is_dir();
    if access == AccessMode::Read && !is_dir {
        return match io::copy(&mut file, &mut io::stdout().lock()) {
            // The reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            Err(error) => Err(Failure::new(format!("{}: {}", shown(path), words(&error)))),
            Ok(_) => Ok(0),
        };
    }
    message::answer(&format!("granted: {access} {}", shown(path)))
}

fn value(path: &Path, access: AccessMode, answer: &FileRequestAnswer) -> Value {
    let (granted, already_open, by, reason) = match answer {
        FileRequestAnswer::Granted { by, .. } => (true, false, Some(by), None),
        FileRequestAnswer::AlreadyOpen => (true, true, None, None),
        FileRequestAnswer::Denied { by, reason } => (false, false, by.as_ref(), Some(reason)),
    };
    json!({
        "path": nono::rollback::changes::JsonText(path.as_os_str().as_encoded_bytes()),
        "access": access,
        "granted": granted,
        "already_open": already_open,
        "by": by,
        "reason": reason,
    })
}
