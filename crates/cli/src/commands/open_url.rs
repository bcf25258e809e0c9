//! Addresses in the person's browser: the shim that `BROWSER` names inside the sandbox, and what it has opened outside.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nono::diagnostic::escape;
use nono::request;
use nono::urls::UrlOpener;

use crate::failure::{Failure, NOT_DONE, words};
use crate::host::request_socket;
use crate::message;

/// A browser that cannot start says so at once; one that starts may stay.
const PATIENCE: Duration = Duration::from_secs(3);

/// Inside the sandbox, as `$BROWSER URL…` calls it.
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

/// Outside: the desktop's own way.
#[derive(Debug)]
pub(crate) struct Desktop;

impl UrlOpener for Desktop {
    fn open(&self, url: &str) -> Result<(), String> {
        let started = Command::new("xdg-open")
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut browser = started.map_err(|error| format!("xdg-open: {}", words(&error)))?;
        let (told, ended) = mpsc::channel();
        // Waits for as long as the browser stays, so that nothing is left behind when it goes. Where no thread can be
        // had, nobody waits: the browser runs all the same.
        let _ = std::thread::Builder::new().spawn(move || {
            // Whoever wanted to know may have stopped listening.
            let _ = told.send(browser.wait());
        });
        match ended.recv_timeout(PATIENCE) {
            Ok(Ok(status)) if !status.success() => Err(format!("xdg-open failed: {status}")),
            Ok(Err(error)) => Err(format!("xdg-open: {}", words(&error))),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }
}
