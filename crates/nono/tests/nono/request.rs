//! The client inside a sandbox, against a real reception; this process stands for the sandbox's init.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use nono::request::{self, FileRequestAnswer, RequestError, Wait};
use nono::{AccessMode, SessionInfo};
use nono_supervisor::approval::Asker;
use nono_supervisor::channel::{Bounds, ChannelThreads, Channels, Listening, REQUEST_SOCKET};
use nono_supervisor::report::{MediationReport, RefusalReason};
use nono_supervisor::request_service::{RequestFailure, RequestReply, RequestService, StillWanted};

/// Grants what is there, unless it is called `closed`; what is called `open` was open before.
struct Desk;

impl RequestService for Desk {
    fn capability(
        &self,
        _asker: &Asker,
        path: PathBuf,
        _access: AccessMode,
        _reason: Option<String>,
        _wanted: &StillWanted<'_>,
    ) -> RequestReply {
        match path.file_name().unwrap().to_str() {
            Some("closed") => {
                RequestReply::Denied { because: RefusalReason::NoAnswer { why: "nobody is here".to_owned() } }
            }
            Some("open") => RequestReply::AlreadyOpen,
            _ => RequestReply::Granted { fd: File::open(path).unwrap().into(), by: "the test".to_owned() },
        }
    }

    fn checkpoint(&self, _asker: &Asker, reason: &str) -> Result<u64, RequestFailure> {
        if reason == "good" { Ok(4) } else { Err(RequestFailure::Service("not tracked".into())) }
    }

    fn restore(
        &self,
        _asker: &Asker,
        snapshot: u64,
        paths: Vec<PathBuf>,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        if snapshot == 4 {
            Ok(format!("{} back", paths.len()))
        } else {
            Err(RequestFailure::Service("no such snapshot".into()))
        }
    }

    fn history(
        &self,
        _asker: &Asker,
        _action: nono_checkpoint::supervisor_request::RemoteAction,
        _wanted: &StillWanted<'_>,
    ) -> Result<serde_json::Value, RequestFailure> {
        Err(RequestFailure::Service("no histories here".into()))
    }

    fn open_url(
        &self,
        _asker: &Asker,
        url: &str,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        if url == "https://good.org/" {
            Ok("somebody".to_owned())
        } else {
            Err(RequestFailure::Service("not this one".into()))
        }
    }

    fn report(&self) -> MediationReport {
        MediationReport::default()
    }

    fn waiting(&self) -> u64 {
        0
    }
}

#[test]
fn what_is_asked_for_is_answered() {
    let temp = tempfile::tempdir().unwrap();
    let info = SessionInfo {
        id: "1".to_owned(),
        name: None,
        pid: std::process::id(),
        started: String::new(),
        command: Vec::new(),
        workdir: "/".into(),
        strategy: "supervised".to_owned(),
        grants: 0,
        rollback: None,
    };
    let listening = Listening::bind(temp.path(), REQUEST_SOCKET).unwrap();
    let channels = Channels { request: Some(listening), control: None, info, bounds: Bounds::default() };
    let reception = ChannelThreads::open(channels, Arc::new(Desk), std::process::id()).unwrap();
    let socket = temp.path().join(REQUEST_SOCKET);
    for name in ["granted", "open", "closed"] {
        std::fs::write(temp.path().join(name), name).unwrap();
    }
    let ask =
        |name: &str| request::ask(&socket, &temp.path().join(name), AccessMode::Read, Some("why")).unwrap();
    for name in ["granted", "open"] {
        let mut text = String::new();
        File::from(ask(name).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, name);
    }
    assert!(ask("closed").is_none());
    let denied =
        request::ask_for(&socket, &temp.path().join("closed"), AccessMode::Write, None, Wait::default())
            .unwrap();
    assert!(matches!(denied, FileRequestAnswer::Denied { by: None, reason } if reason == "nobody is here"));
    assert_eq!(request::checkpoint(&socket, "good").unwrap(), 4);
    let refused = |result: Result<(), RequestError>| result.unwrap_err().to_string();
    assert_eq!(refused(request::checkpoint(&socket, "bad").map(drop)), "not tracked");
    assert_eq!(request::restore(&socket, 4, &["/a".into(), "/b".into()]).unwrap(), "2 back");
    assert_eq!(refused(request::restore(&socket, 5, &[]).map(drop)), "no such snapshot");
    let relative = request::ask_for(&socket, "relative".as_ref(), AccessMode::Read, None, Wait::default());
    assert!(refused(relative.map(drop)).contains("a path must be absolute"));
    drop(reception);
    let gone = request::checkpoint(&socket, "good");
    assert!(refused(gone.map(drop)).ends_with("No such file or directory"));
}
