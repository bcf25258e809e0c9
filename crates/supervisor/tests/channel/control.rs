//! Control socket: status and stop.

use std::time::Duration;

use nono_policy::AccessMode;
use nono_supervisor::channel::{
    Bounds, CONTROL_SOCKET, ChannelResponse, ClientError, ControlRequest, RequestProblem, Wait, exchange,
    new_id,
};
use nono_supervisor::report::{DeniedAttempt, RefusalReason, Refused};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::kit::{Init, Place};

fn ask(place: &Place, request: &ControlRequest) -> Result<ChannelResponse, ClientError> {
    let wait = Wait { patience: Some(Duration::from_secs(60)), until: None };
    exchange(&place.path(CONTROL_SOCKET), request, wait).map(|(answer, _)| answer)
}

fn status(place: &Place) -> nono_supervisor::channel::RunningStatus {
    match ask(place, &ControlRequest::Status { id: new_id() }) {
        Ok(ChannelResponse::StatusResponse { status, .. }) => *status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_tells_what_it_is_doing() {
    let place = Place::new(Init::Other, Bounds::default());
    place.ask("1", "granted");
    let waiting = place.connect();
    waiting.send(&place.wanted("2", "later"));
    place.service.until_waiting(1);
    let found = status(&place);
    assert_eq!((found.session.name.as_deref(), found.session.grants), (Some("mine"), 3));
    assert_eq!((found.questions_waiting, found.requests.served), (1, 1));
    place.service.release();
    assert!(waiting.answer().is_some());
}

fn stop_is_wanted(place: &Place) -> bool {
    let stop = place.threads().stop_wanted();
    let mut fds = [PollFd::new(&stop, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    !fds[0].revents().is_empty()
}

#[test]
fn a_stop_is_answered_and_then_heard() {
    let place = Place::new(Init::Other, Bounds::default());
    assert!(!stop_is_wanted(&place));
    let id = new_id();
    let answer = ask(&place, &ControlRequest::Stop { id: id.clone() }).unwrap();
    assert_eq!(answer, ChannelResponse::StopResponse { id: id.clone(), stopping: true });
    crate::kit::until(|| stop_is_wanted(&place));
    let again = ask(&place, &ControlRequest::Stop { id });
    assert!(
        matches!(again, Err(ClientError::Refused { problem: RequestProblem::Replayed, .. })),
        "{again:?}"
    );
}

/// A report is cut to what a message holds, and the cut part is counted.
#[test]
fn a_long_report_is_cut() {
    let place = Place::new(Init::Other, Bounds::default());
    let refused = |number: u32| Refused {
        attempt: DeniedAttempt::Open {
            path: format!("/{}/{number}", "long/".repeat(50)).into(),
            access: AccessMode::Read,
        },
        because: RefusalReason::TooMany,
        program: "/bin/cat".into(),
        pid: number,
        count: 2,
    };
    place.service.report.lock().unwrap().refused = (0..5000).map(refused).collect();
    let found = status(&place).mediation;
    let listed = u64::try_from(found.refused.len()).unwrap();
    assert!(listed > 10, "{listed}");
    assert_eq!(2 * listed + found.refused_unlisted, 10_000);
    assert_eq!(found.refused[0], refused(0));
}
