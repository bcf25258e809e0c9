//! Opening of web addresses in the user's browser: the shim that `BROWSER` names inside the sandbox, and the opener
//! outside.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nono::diagnostic::escape;
use nono::urls::UrlOpener;
use nono::{ServiceError, request};

use crate::failure::{Failure, NOT_DONE, words};
use crate::host::request_socket;
use crate::message;

/// Time in which a failure to start the browser is noticed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Shim inside the sandbox, called as `$BROWSER URL…`.
pub(crate) fn shim(urls: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let socket = request_socket().ok_or_else(|| {
        Failure::new(
            "open-url: this is not inside a supervised nono sandbox (NONO_REQUEST_SOCK names no socket)",
        )
    })?;
    let mut code = 0;
    for url in urls {
        let url = url.to_string_lossy();
        if let Err(error) = request::open_url(&socket, &url) {
            message::line(&format!("not opened: {}: {}", escape(&url), escape(&error.to_string())));
            code = NOT_DONE;
        }
    }
    Ok(code)
}

/// Opener outside the sandbox: `xdg-open`.
#[derive(Debug)]
pub(crate) struct Desktop;

impl UrlOpener for Desktop {
    fn open(&self, url: &str) -> Result<(), ServiceError> {
        let started = Command::new("xdg-open")
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut browser = started.map_err(|error| format!("xdg-open: {}", words(&error)))?;
        let (told, ended) = mpsc::channel();
        // Reaps the browser when it ends. If no thread can be started, it is not reaped, but runs all the same.
        let _ = std::thread::Builder::new().spawn(move || {
            // The receiver may have timed out.
            let _ = told.send(browser.wait());
        });
        match ended.recv_timeout(PATIENCE) {
            Ok(Ok(status)) if !status.success() => Err(format!("xdg-open failed: {status}").into()),
            Ok(Err(error)) => Err(format!("xdg-open: {}", words(&error)).into()),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }
}
