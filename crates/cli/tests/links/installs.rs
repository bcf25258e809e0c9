//! Hooks put into a project, taken out of it and looked for, where a command left links, pipes and endless files.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

/// Every agent that has hooks in a project.
fn agents() -> Vec<String> {
    let all = nono(&world(), &["hooks", "status", "--scope", "project", "--json"]).ok().json();
    let agents: Vec<String> =
        all.as_array().unwrap().iter().map(|agent| agent["agent"].as_str().unwrap().to_owned()).collect();
    assert!(agents.len() > 3, "{agents:?}");
    agents
}

fn hooks(world: &World, verb: &str, agent: &str) -> Said {
    nono(world, &["hooks", verb, agent, "--scope", "project", "--yes"])
}

/// Everything in a folder, by name: what it is, and what is in it.
fn tree(world: &World, below: &str) -> Vec<String> {
    let listed = world.command("find").arg(world.path(below)).args(["-printf", "%p %y %l %s %C@\n"]).output();
    let mut lines: Vec<String> =
        String::from_utf8(listed.unwrap().stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// What the project's files for an agent are: asked of an install into an empty project.
fn targets(agent: &str) -> Vec<String> {
    let world = world();
    let plan =
        nono(&world, &["hooks", "install", agent, "--scope", "project", "--dry-run", "--json"]).ok().json();
    let work = path(&world, "work") + "/";
    let paths = plan["changes"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap());
    paths.filter_map(|path| path.strip_prefix(&work)).map(str::to_owned).collect()
}

#[test]
fn a_planted_link_leads_an_install_nowhere() {
    for agent in &agents() {
        for file in targets(agent) {
            let world = world();
            let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
            first_run(&world, &format!("mkdir -p {folder}; ln -s ~/.ssh/id_rsa {file}"));
            let before = (tree(&world, "work"), tree(&world, "home"));
            let said = hooks(&world, "install", agent).code(125);
            assert!(said.err.contains(&format!("{file} is a link")), "{agent} {file}: {said:?}");
            assert!(said.err.contains("home/.ssh/id_rsa"), "its target: {said:?}");
            assert_eq!((tree(&world, "work"), tree(&world, "home")), before, "{agent} {file}");
            assert_eq!(text(&world, "home/.ssh/id_rsa"), "KEY\n");
            assert!(!said.out.contains("KEY") && !said.err.contains("KEY"));
        }
    }
}

#[test]
fn an_install_follows_no_planted_link_to_a_folder() {
    let world = world();
    fs::create_dir(world.path("home/.claude")).unwrap();
    fs::write(world.path("home/.claude/settings.json"), "{}\n").unwrap();
    first_run(&world, "ln -s ~/.claude .claude; mkdir -p .gemini; ln -s ~ .gemini/commands");
    let before = (tree(&world, "work"), tree(&world, "home"));
    for agent in ["claude-code", "gemini"] {
        hooks(&world, "install", agent).code(125);
    }
    assert_eq!((tree(&world, "work"), tree(&world, "home")), before);
}

#[test]
fn a_link_inside_the_project_is_followed_and_shown() {
    let world = world();
    world.file("work/AGENTS.md", "# Mine\n", 0o640);
    symlink("AGENTS.md", world.path("work/CLAUDE.md")).unwrap();
    let plan = nono(&world, &["hooks", "install", "claude-code", "--scope", "project", "--dry-run"]).ok();
    let line = format!("{} -> {}", path(&world, "work/CLAUDE.md"), path(&world, "work/AGENTS.md"));
    assert!(plan.err.contains(&line), "{plan:?}");
    hooks(&world, "install", "claude-code").ok();
    assert!(world.path("work/CLAUDE.md").is_symlink());
    assert!(text(&world, "work/AGENTS.md").starts_with("# Mine\n\n<!-- nono:begin"));
    assert_eq!(fs::metadata(world.path("work/AGENTS.md")).unwrap().mode() & 0o777, 0o640);
    hooks(&world, "remove", "claude-code").ok();
    assert_eq!(text(&world, "work/AGENTS.md"), "# Mine\n");
}

#[test]
fn copies_are_kept_in_nonos_own_folder() {
    let world = world();
    world.file("work/CLAUDE.md", "# Mine\n", 0o644);
    let said = hooks(&world, "install", "claude-code").ok();
    let kept = said.err.lines().find_map(|line| line.split_once("kept a copy: ")).unwrap().1.to_owned();
    assert!(kept.starts_with(&path(&world, "state")), "{said:?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "# Mine\n");
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o600);
    assert!(!tree(&world, "work").iter().any(|line| line.contains("backup")));
    hooks(&world, "remove", "claude-code").ok();
    assert_eq!(text(&world, "work/CLAUDE.md"), "# Mine\n");
}

#[test]
fn a_link_planted_after_the_install_leads_a_removal_nowhere() {
    let world = world();
    world.file("home/mine/commands/rollback.md", "<!-- nono:begin -->\n", 0o644);
    hooks(&world, "install", "claude-code").ok();
    // An agent's instructions are protected while a command runs; so another process made the link.
    fs::remove_file(world.path("work/CLAUDE.md")).unwrap();
    symlink(world.path("home/.ssh/id_rsa"), world.path("work/CLAUDE.md")).unwrap();
    fs::remove_dir_all(world.path("work/.claude/commands")).unwrap();
    symlink(world.path("home/mine/commands"), world.path("work/.claude/commands")).unwrap();
    let before = tree(&world, "home");
    let said = hooks(&world, "remove", "claude-code").ok();
    assert!(said.err.contains("CLAUDE.md is a link") && said.err.contains("it stays as it is"), "{said:?}");
    assert_eq!(tree(&world, "home"), before);
    assert!(!world.path("work/.claude/settings.json").exists(), "{said:?}");
}

#[test]
fn nothing_waits_for_a_pipe_or_reads_without_end() {
    for (make, words) in [
        ("mkfifo CLAUDE.md", "is not a regular file"),
        ("mkdir CLAUDE.md", "is not a regular file"),
        ("truncate -s 20G CLAUDE.md", "is larger than"),
    ] {
        let world = world();
        first_run(&world, make);
        for args in [
            vec!["hooks", "install", "claude-code", "--scope", "project", "--yes"],
            vec!["hooks", "remove", "claude-code", "--scope", "project", "--yes"],
            vec!["hooks", "status", "claude-code", "--scope", "project"],
        ] {
            let said = world.command("timeout").args(["60", "nono"]).args(&args).output().unwrap();
            let said = Said::of(&said);
            assert!([Some(125), Some(1)].contains(&said.code), "{make} {args:?}: {said:?}");
            assert!(said.err.contains(words) || said.out.contains(words), "{make} {args:?}: {said:?}");
        }
        let said = world.command("timeout").args(["60", "nono", "status"]).output().unwrap();
        assert_ne!(said.status.code(), Some(124), "{make}");
    }
}
