use std::path::Path;

use super::*;
use crate::profile::{ProfileGrant, ProfilePath};
use crate::testing::{FakeTree, dir, grant, host, resolve_in};
use crate::{AccessMode, GrantKind};

fn tree() -> FakeTree {
    FakeTree::of(&[
        "/h/docs/private",
        "/h/w/out/x",
        "/h/w/sub/file",
        "/h/w/build -> /h",
        "/h/w/inner -> out",
        "/h/w/two -> build/docs",
        "/h/w/sock -> /other/sock",
        "/h/w/later -> /other/away",
        "/h/code -> /other/code",
        "/other/code/p/file",
        "/other/code/p/back -> /h/w",
        "/other/sock =",
        "/usr/bin/nono",
        "/tmp -> /private/tmp",
        "/private/tmp/x/",
    ])
}

fn way(path: &str) -> LinkTrace {
    follow(&tree(), Some(Path::new("/h")), Path::new(path)).unwrap()
}

fn departure(link: &str, target: &str) -> EscapingLink {
    EscapingLink { link: link.into(), target: target.into() }
}

#[test]
fn links_that_leave_their_folder_are_escaping_links() {
    assert_eq!(way("/h/w/build").escaping_links, [departure("/h/w/build", "/h")]);
    assert_eq!(way("/h/w/build/docs").end, Path::new("/h/docs"));
    assert_eq!(way("/h/w/sub/../build/docs").escaping_links, [departure("/h/w/build", "/h")]);
    let both = [departure("/h/w/two", "/h/docs"), departure("/h/w/build", "/h")];
    assert_eq!(way("/h/w/two/private").escaping_links, both);
    // Behind a link of the home folder there may be others.
    assert_eq!(way("/h/code/p/back/out").escaping_links, [departure("/other/code/p/back", "/h/w")]);
}

#[test]
fn links_that_stay_or_that_no_command_made_are_followed() {
    for (path, end) in [
        ("/h/w/inner/x", "/h/w/out/x"),
        ("/h/code/p", "/other/code/p"),
        ("/tmp/x", "/private/tmp/x"),
        ("/h/w/sub/file", "/h/w/sub/file"),
        ("/h/w/absent/../sub", "/h/w/sub"),
    ] {
        assert_eq!(way(path), LinkTrace { end: end.into(), escaping_links: vec![] }, "{path}");
    }
}

#[test]
fn a_grant_through_an_unconfirmed_link_is_refused_with_its_target() {
    let request = dir("/h/w/build", AccessMode::ReadWrite);
    let error = resolve_in(&tree(), &request).unwrap_err();
    assert!(matches!(&error, PolicyError::LeadsOut { found, .. } if found == Path::new("/h")), "{error}");
    assert!(error.to_string().contains("/h/w/build leads to /h:"), "{error}");
    assert!(error.hint().unwrap().contains("use /h if"), "{error}");
    let socket = RunRequest { unix_sockets: vec!["/h/w/sock".into()], ..RunRequest::default() };
    assert!(matches!(resolve_in(&tree(), &socket), Err(PolicyError::LeadsOut { .. })));
    let bypass = RunRequest { bypass_protection: vec!["/h/w/build/.ssh".into()], ..RunRequest::default() };
    assert!(matches!(resolve_in(&tree(), &bypass), Err(PolicyError::LeadsOut { .. })));
    // Of a profile: the same.
    let mut profile = MergedProfile::default();
    profile.filesystem.grants = vec![ProfileGrant {
        at: ProfilePath {
            path: "$WORKDIR/two".into(),
            optional: false,
            profile: "mine".into(),
            exact: false,
        },
        access: AccessMode::Read,
        kind: GrantKind::Directory,
    }];
    let refused = crate::resolve(&RunRequest::default(), &host(), &profile, &crate::testing::data(), &tree());
    assert!(matches!(refused, Err(PolicyError::LeadsOut { .. })), "{refused:?}");
}

#[test]
fn a_link_is_agreed_to_with_its_target() {
    let mut request = dir("/h/w/build", AccessMode::Read);
    request.links = vec![departure("/h/w/build", "/other")];
    assert!(resolve_in(&tree(), &request).is_err());
    request.links = vec![departure("/h/w/build", "/h")];
    assert_eq!(resolve_in(&tree(), &request).unwrap().grants[0].resolved, Path::new("/h"));
}

#[test]
fn every_typed_path_is_checked_once() {
    let request = RunRequest {
        grants: vec![
            grant("/h/w/two", AccessMode::Read, GrantKind::Directory),
            grant("/h/w/two", AccessMode::Write, GrantKind::Directory),
            grant("/h/w/sub", AccessMode::Write, GrantKind::Directory),
            grant("/h/w/later", AccessMode::Write, GrantKind::Directory),
        ],
        unix_sockets: vec!["sock".into()],
        ..RunRequest::default()
    };
    let found = typed(&request, &host(), &MergedProfile::default(), &tree());
    let paths: Vec<_> = found.iter().map(|link| link.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["/h/w/two", "/h/w/sock"]);
}
