//! Profiles of people, and children, that mean no good.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn the_child_cannot_write_it() {
    let world = world();
    agree(&world);
    let wider = r#"{"filesystem": {"read": ["../other"]}}"#;
    let script = format!(
        "echo '{wider}' > .nono/profile.json; rm .nono/profile.json; mv .nono old; echo x > .nono/new; \
         mkdir n; echo '{wider}' > n/profile.json; mv -T n .nono; ln -sf /tmp .nono; cat .nono/profile.json"
    );
    let before = fs::read_to_string(world.path("work/.nono/profile.json")).unwrap();
    let ran = nono(&world, &["run", "--allow-cwd", "--", "sh", "-c", &script]);
    assert_eq!(ran.out.trim_end(), before, "{ran:?}");
    assert_eq!(fs::read_to_string(world.path("work/.nono/profile.json")).unwrap(), before);
    assert!(!world.path("work/.nono/new").exists() && !world.path("work/old").exists(), "{ran:?}");
    let ran = nono(&world, &["run", "--allow", "work/.nono", "--workdir", "..", "--", "true"]);
    assert_ne!(ran.code, 0);
}

#[test]
fn one_that_the_child_makes_opens_nothing() {
    let world = world();
    fs::remove_dir_all(world.path("work/.nono")).unwrap();
    let more = world.path("other/more/y").display().to_string();
    let script = r#"mkdir .nono; echo '{"filesystem": {"read": ["../other/more"]}}' > .nono/profile.json"#;
    let ran = nono(&world, &["run", "--allow-cwd", "--rollback", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = nono(&world, &["rollback", "show"]);
    assert!(shown.out.contains("sandbox profile"), "it is named in the review: {shown:?}");
    assert_ne!(nono(&world, &["run", "--allow-cwd", "--", "cat", &more]).code, 0);
    // And it cannot be agreed to from inside.
    let script = "nono profile trust; nono profile trust --forget";
    let ran = nono(&world, &["run", "--allow-cwd", "--", "sh", "-c", script]);
    assert!(ran.err.contains("inside a sandbox"), "{ran:?}");
}

#[test]
fn a_link_of_the_child_leads_the_agreed_profile_nowhere() {
    let world = world();
    world.file("work/cache/z", "cache\n", 0o644);
    profile(&world, r#"{"filesystem": {"read": ["cache"]}}"#);
    agree(&world);
    let ran = nono(&world, &["run", "--", "cat", "cache/z"]);
    assert_eq!(ran.out, "cache\n", "{ran:?}");
    let script = format!("rm -r cache && ln -s {} cache", world.path("other/more").display());
    assert_eq!(nono(&world, &["run", "--allow-cwd", "--", "sh", "-c", &script]).code, 0);
    let ran = nono(&world, &["run", "--", "cat", "cache/y"]);
    assert!(ran.out.is_empty() && ran.err.contains("it changed since you agreed to it"), "{ran:?}");
}

#[test]
fn what_cannot_be_trusted_is_refused_and_nothing_is_run() {
    let world = world();
    let file = world.path("work/.nono/profile.json");
    let long = format!("{{\"description\": \"{}\"}}", "x".repeat(2 << 20));
    let texts = [
        ("{", "profile.json:1:1"),
        (long.as_str(), "larger than"),
        (r#"{"filesystem": {"read": ["/"]}}"#, "too broad for a project's profile"),
        (r#"{"filesystem": {"allow": ["~"]}}"#, "too broad for a project's profile"),
        (r#"{"filesystem": {"read": ["~/.ssh"]}}"#, "protected"),
        (r#"{"filesystem": {"bypass_protection": ["~/.ssh"]}}"#, "cannot set"),
        (r#"{"filesystem": {"unix_socket": ["/var/run/docker.sock"]}}"#, "cannot set"),
        (r#"{"filesystem": {"read": ["$PATH"]}}"#, "unknown variable"),
        (r#"{"network": {"allow_domain": ["*"]}}"#, "allow_domain"),
        (r#"{"environment": {"allow_vars": ["AWS_SECRET_ACCESS_KEY"]}}"#, "cannot set"),
        (r#"{"environment": {"set_vars": {"LD_PRELOAD": "x"}}}"#, "inject code"),
        (r#"{"extends": "mine"}"#, "built-in profiles only"),
        (r#"{"filesystem": {"read": ["../other/gone"]}}"#, "does not exist"),
        ("{\"description\": \"\u{1b}]52;c;eA==\u{7}\", \"colour\": 1}", "colour"),
    ];
    world.file("home/.ssh/id", "key\n", 0o600);
    let refused = |what: &str, expected: &str| {
        for command in ["run", "wrap", "shell"] {
            let mut args = vec![command, "--allow-cwd"];
            args.extend(["--", "touch", "ran"].iter().filter(|_| command != "shell"));
            let ran = nono(&world, &args);
            assert!(ran.code == 125 && ran.err.contains(expected), "{what:.80} {command}: {ran:?}");
            assert!(
                ran.err.contains("--no-project-profile") && !ran.err.contains("--bypass-protection"),
                "{ran:?}"
            );
            assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
            assert!(!world.path("work/ran").exists());
        }
    };
    for (text, expected) in texts {
        profile(&world, text);
        refused(text, expected);
    }
    let elsewhere = world.path("other/profile.json");
    fs::write(&elsewhere, "{}").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    refused("a link", "is a link");
    fs::remove_file(&file).unwrap();
    assert!(world.command("mkfifo").arg(&file).status().unwrap().success());
    refused("a pipe", "not a regular file");
    fs::remove_file(&file).unwrap();
    world.file("work/.nono/profile.json", "{}", 0o666);
    refused("written by others", "can be written by others");
    fs::remove_file(&file).unwrap();
    if world::is_root() {
        fs::write(&file, "{}").unwrap();
        std::os::unix::fs::chown(&file, Some(60_777), None).unwrap();
        refused("another's", "belongs to user 60777");
    }
}

#[test]
fn neither_the_home_folder_nor_nonos_own_is_a_project() {
    let world = world();
    world.file("home/.nono/profile.json", r#"{"filesystem": {"deny": ["x"]}}"#, 0o644);
    world.file("home/Makefile", "all:\n", 0o644);
    world.file("home/x", "here\n", 0o644);
    let home = world.path("home").display().to_string();
    let ran = nono(&world, &["run", "--workdir", &home, "--read", &home, "--", "cat", "x"]);
    assert_eq!((ran.out.as_str(), ran.code), ("here\n", 0), "{ran:?}");
}

#[test]
fn a_bypass_of_the_persons_is_not_the_projects() {
    let world = world();
    world.file("home/.config/gh/hosts.yml", "token\n", 0o600);
    world.file("home/.config/app/a", "a\n", 0o600);
    profile(&world, r#"{"filesystem": {"allow": ["~/.config"]}}"#);
    agree(&world);
    let token = world.path("home/.config/gh/hosts.yml").display().to_string();
    assert_ne!(nono(&world, &["run", "--", "cat", &token]).code, 0);
    let gh = world.path("home/.config/gh").display().to_string();
    let args = ["run", "--bypass-protection", &gh, "--read", &gh, "--", "cat", &token];
    let ran = nono(&world, &args);
    assert!(ran.code == 125 && ran.err.contains("cannot use your bypass"), "{ran:?}");
}
