use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;

use nono_sys::process;

use super::*;

struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    /// A project with this profile, in a home folder.
    fn new(text: &str) -> Project {
        let project = Project { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.root().join(".nono")).unwrap();
        fs::create_dir_all(project.root().join("sub/deep")).unwrap();
        fs::write(project.root().join("Makefile"), "").unwrap();
        project.write(text.as_bytes());
        project
    }

    fn home(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("home")
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("home/p")
    }

    fn file(&self) -> PathBuf {
        self.root().join(PROJECT_FILE)
    }

    fn write(&self, content: &[u8]) {
        fs::write(self.file(), content).unwrap();
        fs::set_permissions(self.file(), fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn context(&self, cwd: &str) -> HostContext {
        HostContext {
            cwd: self.root().join(cwd),
            home: Some(self.home()),
            state_dir: self.home().join(".nono"),
            config_dir: self.home().join(".config/nono"),
            ..HostContext::default()
        }
    }

    fn look(&self) -> Result<Option<ProjectProfileHere>, ProjectProfileError> {
        look(&self.context("."))
    }

    fn here(&self) -> ProjectProfileHere {
        self.look().unwrap().unwrap()
    }

    fn agree(&self) {
        self.here().answer(&self.context(".").state_dir, true).unwrap();
    }
}

const READS: &str = r#"{"filesystem": {"read": ["/usr/share"]}}"#;

#[test]
fn an_agreement_is_to_these_bytes_in_this_folder() {
    let project = Project::new(READS);
    assert_eq!(project.here().standing, Standing::New);
    project.agree();
    assert_eq!(project.here().standing, Standing::Agreed);
    assert_eq!(look(&project.context("sub/deep")).unwrap().unwrap().standing, Standing::Agreed);

    project.write(format!("{READS} ").as_bytes());
    assert_eq!(project.here().standing, Standing::Changed);
    project.write(READS.as_bytes());
    assert_eq!(project.here().standing, Standing::Agreed);

    let elsewhere = project.home().join("q");
    fs::rename(project.root(), &elsewhere).unwrap();
    let context = HostContext { cwd: elsewhere, ..project.context(".") };
    assert_eq!(look(&context).unwrap().unwrap().standing, Standing::New);
}

#[test]
fn a_no_is_kept_until_something_changes() {
    let project = Project::new(READS);
    project.here().answer(&project.context(".").state_dir, false).unwrap();
    assert_eq!(project.here().standing, Standing::Declined);
    assert!(!project.here().overlays(&project.context(".")).unwrap()[0].agreed);
    project.write(br#"{"filesystem": {"read": ["/usr/lib"]}}"#);
    assert_eq!(project.here().standing, Standing::Changed);
    assert!(forget(&project.context(".").state_dir, &project.root()).unwrap());
    assert_eq!(project.here().standing, Standing::New);
}

#[test]
fn the_same_bytes_that_lead_elsewhere_are_asked_about_again() {
    let project = Project::new(r#"{"filesystem": {"allow": ["data"]}}"#);
    let (one, other) = (project.home().join("one"), project.home().join("other"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&other).unwrap();
    symlink(&one, project.root().join("data")).unwrap();
    project.agree();
    fs::remove_file(project.root().join("data")).unwrap();
    symlink(&other, project.root().join("data")).unwrap();
    let here = project.here();
    assert_eq!(here.standing, Standing::Changed);
    let (added, removed) = here.differences();
    assert_eq!((added.len(), removed.len()), (1, 1));
    assert!(added[0].text.ends_with("/other") && removed[0].text.ends_with("/one"), "{added:?} {removed:?}");
}

#[test]
fn a_damaged_record_is_no_agreement() {
    let project = Project::new(READS);
    project.agree();
    let record =
        fs::read_dir(project.context(".").state_dir.join("trusted")).unwrap().next().unwrap().unwrap();
    fs::write(record.path(), "{").unwrap();
    assert_eq!(project.here().standing, Standing::New);
}

#[test]
fn what_is_not_an_ordinary_file_of_ones_own_is_refused() {
    let project = Project::new(READS);
    let file = project.file();
    fs::remove_file(&file).unwrap();
    assert!(project.look().unwrap().is_none());

    let elsewhere = project.home().join("elsewhere.json");
    fs::write(&elsewhere, READS).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(matches!(project.look(), Err(ProjectProfileError::Link { .. })));
    fs::remove_file(&file).unwrap();

    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(matches!(project.look(), Err(ProjectProfileError::Profile(ProfileError::NotAFile { .. }))));
    fs::remove_file(&file).unwrap();

    let socket = UnixListener::bind(&file).unwrap();
    assert!(matches!(project.look(), Err(ProjectProfileError::Profile(ProfileError::NotAFile { .. }))));
    drop(socket);
    fs::remove_file(&file).unwrap();

    fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    assert!(matches!(project.look(), Err(ProjectProfileError::Profile(ProfileError::TooLarge { .. }))));

    project.write(b"{\"description\": \"\xff\"}");
    assert!(matches!(project.look(), Err(ProjectProfileError::Profile(ProfileError::Read { .. }))));

    project.write(READS.as_bytes());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).unwrap();
    assert!(matches!(project.look(), Err(ProjectProfileError::WritableByOthers { .. })));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(project.here().standing, Standing::New);
    if process::uid() == 0 {
        chown(&file, None, Some(4242)).unwrap();
        assert!(matches!(project.look(), Err(ProjectProfileError::WritableByOthers { .. })));
        chown(&file, Some(4242), None).unwrap();
        assert!(matches!(project.look(), Err(ProjectProfileError::Foreign { uid: 4242, .. })));
    }
}

#[test]
fn a_folder_that_is_a_link_is_refused() {
    let project = Project::new(READS);
    let moved = project.home().join("moved");
    fs::rename(project.root().join(".nono"), &moved).unwrap();
    symlink(&moved, project.root().join(".nono")).unwrap();
    assert!(matches!(project.look(), Err(ProjectProfileError::Link { .. })));
    fs::remove_file(moved.join("profile.json")).unwrap();
    assert!(project.look().unwrap().is_none());
}

#[test]
fn the_home_folder_has_no_profile_of_a_project() {
    let project = Project::new(READS);
    let state = project.home().join(".nono");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("profile.json"), READS).unwrap();
    fs::write(project.home().join("Makefile"), "").unwrap();
    let context = HostContext { cwd: project.home(), ..project.context(".") };
    assert!(look(&context).unwrap().is_none());
    // Nor where nono's state folder is inside a project.
    let context = HostContext { state_dir: project.root().join(".nono"), ..project.context(".") };
    assert!(look(&context).unwrap().is_none());
}

#[test]
fn the_nearest_opens_and_all_of_them_close() {
    let project = Project::new(r#"{"filesystem": {"read": ["/usr/share"], "deny": ["keys"]}}"#);
    let inner = project.root().join("sub/.nono");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("profile.json"), r#"{"filesystem": {"read": ["/usr/lib"]}}"#).unwrap();
    let context = project.context("sub/deep");
    let mut here = look(&context).unwrap().unwrap();
    assert_eq!(here.root(), project.root().join("sub"));
    here.answer(&context.state_dir, true).unwrap();
    let overlays = here.overlays(&context).unwrap();
    assert_eq!(overlays.len(), 2);
    assert_eq!(overlays[0].profile.filesystem.grants[0].at.path, "/usr/lib");
    assert!(overlays[1].profile.filesystem.grants.is_empty());
    assert_eq!(overlays[1].profile.filesystem.deny[0].path, project.root().join("keys").to_str().unwrap());
}

#[test]
fn what_only_closes_is_used_without_a_word() {
    let project = Project::new(r#"{"filesystem": {"deny": ["Makefile"]}}"#);
    let here = project.here();
    assert_eq!(here.standing, Standing::ClosesOnly);
    let overlays = here.overlays(&project.context(".")).unwrap();
    assert!(overlays[0].agreed && overlays[0].profile.filesystem.deny.len() == 1);
}
