//! Tests that run as an ordinary user.

pub(crate) use nono_testkit::{as_user, give, prepared_by_root};

/// Limit open files to what a shell usually allows. Applies to the whole process: only in a test that runs as a user.
pub(crate) fn few_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1024), maximum: limit.maximum }).unwrap();
}
