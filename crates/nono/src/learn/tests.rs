use nono_policy::{CapabilitySet, HostFacts};

use super::*;

/// A home with a working directory in it, a policy that opens nothing of it, and records of a run there.
struct Lab {
    temp: tempfile::TempDir,
    recorded: Recorded,
    base: ResolvedPolicy,
}

impl Lab {
    fn new() -> Lab {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap().join("home");
        std::fs::create_dir_all(home.join("work")).unwrap();
        let base = CapabilitySet::builder().build().unwrap().to_policy().unwrap();
        Lab { temp, recorded: Recorded::default(), base }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("home").join(below)
    }

    fn touch(&mut self, below: &str, stands: PathObject, uses: &[Use]) -> &mut Lab {
        let path = if below.starts_with('/') { below.into() } else { self.path(below) };
        let fresh = || Touched { stands, uses: [].into(), denied: [].into() };
        self.recorded.touched.entry(path).or_insert_with(fresh).uses.extend(uses);
        self
    }

    /// A file that is there, and was used.
    fn file(&mut self, below: &str, uses: &[Use]) -> &mut Lab {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        self.touch(below, PathObject::File, uses)
    }

    fn protect(&mut self, below: &str) {
        let resolved = self.path(below);
        self.base.closed.push(nono_policy::ClosedPath {
            original: resolved.clone(),
            resolved,
            by: nono_policy::ClosedBy::Protected("ssh".to_owned()),
            kind: nono_policy::PathKind::Directory,
            how: nono_policy::ClosedHow::NotGranted,
            keep_read: false,
            has_openings: false,
        });
    }

    fn propose(&self) -> Proposal {
        let places = BaseFolders { home: Some(self.path("")), workdir: self.path("work") };
        let learned = Learned {
            base: self.base.clone(),
            extends: vec!["default".to_owned()],
            recorded: self.recorded.clone(),
        };
        propose(Some("mine"), "learned", &learned, &self.base, &places, &HostFacts)
    }

    fn filesystem(&self) -> serde_json::Value {
        serde_json::to_value(self.propose().profile.filesystem).unwrap()
    }
}

use Use::{Execute, Made, Names, Read, Write};

#[test]
fn each_use_is_a_grant_of_its_own() {
    let mut lab = Lab::new();
    lab.file("work/in", &[Read]).file("work/out", &[Write]).file("both", &[Read, Write]);
    lab.file("tool", &[Execute]).touch("/proc/1/status", PathObject::File, &[Read]);
    std::fs::create_dir(lab.path("listed")).unwrap();
    lab.touch("listed", PathObject::Directory, &[Read]).touch("gone", PathObject::File, &[Read]);
    assert_eq!(
        lab.filesystem(),
        serde_json::json!({
            "read": ["$HOME/listed"],
            "allow_file": ["$HOME/both"],
            "read_file": [{"path": "$HOME/gone", "optional": true}, "$HOME/tool", "$WORKDIR/in"],
            "write_file": ["$WORKDIR/out"],
        })
    );
    let proposal = lab.propose();
    assert_eq!(proposal.executed, [lab.path("tool")]);
    assert_eq!(proposal.profile.bases(), ["default"]);
}

#[test]
fn four_entries_are_a_folder() {
    let mut lab = Lab::new();
    for name in ["1", "2", "3"] {
        lab.file(&format!("work/few/{name}"), &[Read]);
        lab.file(&format!("work/data/{name}"), &[Read]);
    }
    lab.file("work/data/4", &[Read, Write]);
    assert_eq!(
        lab.filesystem(),
        serde_json::json!({
            "read": ["$WORKDIR/data"],
            "allow_file": ["$WORKDIR/data/4"],
            "read_file": ["$WORKDIR/few/1", "$WORKDIR/few/2", "$WORKDIR/few/3"],
        })
    );
    // Folders of a folder count like files, for reading.
    let mut lab = Lab::new();
    for folder in ["a", "b", "c", "d"] {
        for name in ["1", "2", "3", "4"] {
            lab.file(&format!("lib/{folder}/{name}"), &[Read]);
            lab.file(&format!("work/{folder}/{name}"), &[Write]);
        }
    }
    let written: Vec<String> = ["a", "b", "c", "d"].map(|name| format!("$WORKDIR/{name}")).into();
    assert_eq!(lab.filesystem(), serde_json::json!({"read": ["$HOME/lib"], "write": written}));
}

#[test]
fn what_was_made_needs_its_folder() {
    let mut lab = Lab::new();
    std::fs::create_dir(lab.path("out")).unwrap();
    lab.touch("out", PathObject::Directory, &[Names]).touch("out/new", PathObject::File, &[Write, Made]);
    assert_eq!(lab.filesystem(), serde_json::json!({"write": ["$HOME/out"]}));
    // Read again, it has to be readable again; in a folder that was made, too.
    lab.touch("out/dir", PathObject::Directory, &[Write, Made, Names]);
    lab.touch("out/dir/deep", PathObject::File, &[Read]);
    assert_eq!(lab.filesystem(), serde_json::json!({"allow": ["$HOME/out"]}));
    // What was there before and only read stays as it is.
    let mut lab = Lab::new();
    lab.file("out/old", &[Read]).touch("out", PathObject::Directory, &[Names]);
    assert_eq!(lab.filesystem(), serde_json::json!({"write": ["$HOME/out"], "read_file": ["$HOME/out/old"]}));
}

#[test]
fn a_home_or_a_system_is_never_opened() {
    let mut lab = Lab::new();
    for name in ["a", "b", "c", "d", "e"] {
        lab.file(&format!("config-{name}"), &[Read]);
        lab.touch(&format!("/etc/none-{name}"), PathObject::File, &[Read]);
    }
    lab.file("made", &[Write, Made]).touch("", PathObject::Directory, &[Names, Read]);
    lab.touch("temporary", PathObject::File, &[Write, Made]);
    let proposal = lab.propose();
    assert!(proposal.grants.iter().all(|grant| !grant.is_dir), "{:?}", proposal.grants);
    assert!(proposal.grants.iter().any(|grant| grant.path == lab.path("made")), "it is there now");
    assert!(!proposal.grants.iter().any(|grant| grant.path == lab.path("temporary")), "it is not");
    let home = lab.path("").components().collect::<PathBuf>();
    assert_eq!(proposal.too_wide, [(home, AccessMode::ReadWrite)]);
}

#[test]
fn what_is_protected_is_named_and_not_proposed() {
    let mut lab = Lab::new();
    lab.protect("keys/.ssh");
    for name in ["1", "2", "3", "4"] {
        lab.file(&format!("keys/{name}"), &[Read]);
    }
    lab.file("keys/.ssh/id", &[Read]).file("bare/x", &[Read]);
    let proposal = lab.propose();
    assert_eq!(proposal.closed.len(), 1);
    assert_eq!(proposal.closed[0].path, lab.path("keys/.ssh/id"));
    assert_eq!(proposal.closed[0].reason, DeniedReason::Protected { group: "ssh".to_owned() });
    assert_eq!(proposal.closed[0].flags[0], "--bypass-protection");
    // Nor is a folder opened as a whole that contains a closed path.
    assert!(proposal.grants.iter().all(|grant| !grant.is_dir), "{:?}", proposal.grants);
    assert_eq!(proposal.grants.len(), 5);
}

#[test]
fn what_is_open_already_is_left_out() {
    let mut lab = Lab::new();
    lab.file("work/in", &[Read]).file("work/out", &[Write]);
    let set = CapabilitySet::builder().allow_path(lab.path("work"), AccessMode::Read).unwrap();
    lab.base = set.build().unwrap().to_policy().unwrap();
    assert_eq!(lab.filesystem(), serde_json::json!({"write_file": ["$WORKDIR/out"]}));
}

#[test]
fn names_that_no_profile_can_hold_are_told() {
    use std::os::unix::ffi::OsStrExt;
    let mut lab = Lab::new();
    let odd = lab.path("work").join(std::ffi::OsStr::from_bytes(b"a\xff"));
    let touched = Touched { stands: PathObject::File, uses: [Read].into(), denied: [Read].into() };
    lab.recorded.touched.insert(odd.clone(), touched);
    lab.touch("/dev/kmsg", PathObject::Special, &[Read]);
    let proposal = lab.propose();
    assert_eq!(proposal.left_out, [PathBuf::from("/dev/kmsg"), odd.clone()]);
    assert!(proposal.grants.is_empty());
    assert_eq!(proposal.denied, [(odd, AccessMode::Read)]);
}

#[test]
fn the_network_is_opened_as_far_as_it_was_used() {
    let mut lab = Lab::new();
    let reach = |lab: &mut Lab, port, loopback| {
        lab.recorded.reached.insert(Reached { address: format!("x:{port}"), port, loopback }, 1);
    };
    assert_eq!(lab.propose().profile.network, NetworkSection::default());
    reach(&mut lab, 8080, true);
    reach(&mut lab, 9090, true);
    lab.recorded.bound.insert(9090);
    assert_eq!(lab.propose().profile.network.allow_connect_port, [8080], "9090 is its own");
    reach(&mut lab, 40000, true);
    lab.recorded.bound.insert(0);
    assert_eq!(
        lab.propose().profile.network.allow_connect_port,
        [8080],
        "nor is one the kernel chose for it"
    );
    reach(&mut lab, 443, false);
    let network = lab.propose().profile.network;
    assert_eq!((network.block, network.allow_connect_port), (Some(false), vec![]));
    lab.base.network = NetworkPolicy::Allowed;
    assert_eq!(lab.propose().profile.network, NetworkSection::default());
}
