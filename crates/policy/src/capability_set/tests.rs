use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join("file"), "").unwrap();
    (dir, root)
}

#[test]
fn kinds_are_checked_when_added() {
    let (_dir, root) = folder();
    let mut set = CapabilitySet::new();
    let missing = set.allow_path(root.join("none"), AccessMode::Read).unwrap_err();
    assert!(matches!(missing, CapabilityError::PathNotFound { .. }));
    assert!(matches!(set.allow_path("", AccessMode::Read), Err(CapabilityError::PathNotFound { .. })));
    let file = set.allow_path(root.join("file"), AccessMode::Read);
    assert!(matches!(file, Err(CapabilityError::ExpectedDirectory { .. })));
    let dir = set.allow_file(root.join("sub"), AccessMode::Read);
    assert!(matches!(dir, Err(CapabilityError::ExpectedFile { .. })));
    let below = set.allow_file(root.join("file/x"), AccessMode::Read);
    assert!(matches!(below, Err(CapabilityError::Resolve { .. })));
    assert!(set.fs_capabilities().is_empty());
}

#[test]
fn the_summary_has_one_line_a_grant() {
    let (_dir, root) = folder();
    let mut set = CapabilitySet::new();
    assert_eq!(set.summary(), "(no capabilities granted)\nNetwork:\n  outbound: blocked");
    set.allow_path(&root, AccessMode::ReadWrite).unwrap();
    set.set_network(NetworkPolicy::Allowed);
    let expected =
        format!("Filesystem:\n  {} [read+write] (dir)\nNetwork:\n  outbound: allowed", root.display());
    assert_eq!(set.summary(), expected);
}

#[test]
fn equal_paths_join_and_nested_ones_do_not() {
    let (_dir, root) = folder();
    let mut set = CapabilitySet::new();
    set.allow_path(&root, AccessMode::Read).unwrap();
    set.allow_path(root.join("sub/.."), AccessMode::Write).unwrap();
    set.allow_path(root.join("sub"), AccessMode::Read).unwrap();
    set.deduplicate();
    let accesses: Vec<_> = set.fs_capabilities().iter().map(|grant| grant.access).collect();
    assert_eq!(accesses, [AccessMode::ReadWrite, AccessMode::Read]);
}

#[test]
fn covering_goes_by_components_and_never_through_dots() {
    let (_dir, root) = folder();
    let mut set = CapabilitySet::new();
    set.allow_path(&root, AccessMode::Read).unwrap();
    assert!(set.path_covered(root.join("any/where")));
    assert!(!set.path_covered(root.join("../etc")));
    assert!(!set.path_covered(format!("{}x", root.display())));
}

#[test]
fn a_policy_has_one_rule_a_grant_and_masks_what_is_denied() {
    let (_dir, root) = folder();
    let set = CapabilitySet::builder()
        .allow_path(&root, AccessMode::ReadWrite)
        .and_then(|builder| builder.deny(root.join("file")))
        .and_then(CapabilitySetBuilder::build)
        .unwrap();
    let policy = set.to_policy().unwrap();
    assert_eq!(policy.rules.len(), 1);
    assert_eq!(policy.closed[0].how, ClosedHow::Mask);
    let mut set = set;
    set.allow_file(root.join("file"), AccessMode::Read).unwrap();
    assert!(matches!(set.to_policy(), Err(PolicyError::GrantDenied { .. })));
}
