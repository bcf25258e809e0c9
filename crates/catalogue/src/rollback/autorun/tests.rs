use std::path::Path;

use super::{GlobIndex, If, executes_later, held_globs, pattern};

fn mark(path: &str, mode: u32, content: Option<&str>) -> Option<&'static str> {
    executes_later(Path::new(path), mode, &|| content.map(|text| text.as_bytes().to_vec()))
        .map(|later| later.what)
}

#[test]
fn files_that_run_later() {
    for (path, what) in [
        ("/p/.git/hooks/pre-commit", "git hook"),
        ("/p/.git/modules/sub/hooks/post-checkout", "git hook"),
        ("/p/.husky/pre-push", "git hook"),
        ("/p/.husky/_/husky.sh", "git hook"),
        ("/srv/project.git/hooks/update", "git hook"),
        ("/p/.pre-commit-config.yaml", "commit hook"),
        ("/p/.vscode/tasks.json", "editor task"),
        ("/p/.vscode/settings.json", "editor settings"),
        ("/p/.idea/runConfigurations/evil.xml", "editor settings"),
        ("/p/.envrc", "shell environment"),
        ("/p/web/package.json", "package script"),
        ("/p/tests/conftest.py", "test setup"),
        ("/v/lib/python3.12/site-packages/evil.pth", "Python startup"),
        ("/p/setup.py", "build script"),
        ("/p/noxfile.py", "build script"),
        ("/p/build.rs", "build script"),
        ("/p/.cargo/config.toml", "build script"),
        ("/p/Makefile", "build script"),
        ("/p/GNUmakefile", "build script"),
        ("/p/rules.mk", "build script"),
        ("/p/CMakeLists.txt", "build script"),
        ("/p/JUSTFILE", "build script"),
        ("/p/Rakefile", "build script"),
        ("/p/app/build.gradle.kts", "build script"),
        ("/p/gradlew", "build script"),
        ("/p/pom.xml", "build script"),
        ("/p/.github/workflows/ci.yml", "CI"),
        ("/p/.gitlab-ci.yml", "CI"),
        ("/p/.circleci/config.yml", "CI"),
        ("/p/Jenkinsfile", "CI"),
        ("/p/Dockerfile", "container"),
        ("/p/docker-compose.override.yml", "container"),
        ("/p/.devcontainer/devcontainer.json", "container"),
        ("/p/CLAUDE.md", "agent instructions"),
        ("/p/docs/AGENTS.md", "agent instructions"),
        ("/p/.github/copilot-instructions.md", "agent instructions"),
        ("/p/.mcp.json", "agent settings"),
        ("/p/.claude/settings.local.json", "agent settings"),
        ("/p/.cursor/rules/x.mdc", "agent settings"),
        ("/p/.aider.conf.yml", "agent settings"),
        ("/home/me/.bashrc", "shell startup"),
        ("/home/me/.config/fish/config.fish", "shell startup"),
        ("/home/me/.config/systemd/user/evil.service", "system service"),
        ("/home/me/.config/autostart/evil.desktop", "autostart"),
        ("/var/spool/cron/crontabs/me", "cron job"),
        ("/home/me/.ssh/config", "ssh config"),
        ("/home/me/.ssh/authorized_keys", "ssh access"),
    ] {
        assert_eq!(mark(path, 0o644, None), Some(what), "{path}");
    }
}

#[test]
fn files_that_do_not() {
    for path in [
        "/p/src/main.rs",
        "/p/README.md",
        "/p/.git/hooks/pre-commit.sample",
        "/p/.git/index",
        "/p/.env",
        "/p/hooks/useState.ts",
        "/p/vscode/tasks.json",
        "/p/Makefile/readme",
        "/p/notes-package.json",
        "/p/.claude",
        "/p/.claude/worktrees/fix/src/lib.rs",
        "/",
    ] {
        assert_eq!(mark(path, 0o644, Some("")), None, "{path}");
    }
    assert_eq!(mark("/p/.claude/worktrees/fix/.claude/settings.json", 0o644, None), Some("agent settings"));
}

#[test]
fn programs_where_commands_are_looked_for() {
    for path in [
        "/home/me/.local/bin/ls",
        "/p/node_modules/.bin/tsc",
        "/p/venv/bin/python",
        "/home/me/.cargo/bin/cargo",
        "/x/sbin/y",
    ] {
        assert_eq!(mark(path, 0o755, None), Some("program"), "{path}");
        assert_eq!(mark(path, 0o644, None), None, "{path}");
    }
    assert_eq!(mark("/p/tool", 0o755, None), None);
    assert_eq!(mark("/p/githooks/hooks/pre-push", 0o755, None), Some("git hook"));
    assert_eq!(mark("/p/githooks/hooks/pre-push", 0o644, None), None);
}

#[test]
fn settings_of_git_that_run_commands() {
    for config in [
        "[core]\n\tfsmonitor = ./evil",
        "[CORE]\nHooksPath=/tmp",
        "[core] sshCommand = evil",
        "[core]\n\tautocrlf = input\n\tpager = evil\n",
        "[alias]\n\tst = !evil",
        "[alias]\n\tst = \"!evil\"",
        "[filter \"x.y\"]\n\tclean = evil",
        "[diff \"jpg\"]\ntextconv = evil",
        "[merge \"m\"]\n driver = evil %A",
        "[credential]\n\thelper = evil",
        "[credential \"https://example.com\"]\n\thelper = evil",
        "[include]\n\tpath = ../evil",
        "[includeIf \"gitdir:~/\"]\n\tpath = ../evil",
        "[gpg]\n\tprogram = evil",
        "[uploadpack]\n\tpackObjectsHook = evil",
        "[submodule \"x\"]\n\tupdate = !evil",
        "[remote \"a]b\"]\n\tuploadpack = evil",
        "[co\\\nre]\n\teditor = evil\n[core]\n\teditor = evil",
    ] {
        assert_eq!(mark("/p/.git/config", 0o644, Some(config)), Some("git config"), "{config}");
    }
    for config in [
        "",
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = +refs\n",
        "[core]\n# pager = evil\n; editor = evil\n",
        "[alias]\n\tst = status",
        "[submodule \"x\"]\n\tpath = x\n\turl = y\n\tupdate = rebase\n",
        "[user]\n\tname = core.pager = x",
    ] {
        assert_eq!(mark("/p/.git/config", 0o644, Some(config)), None, "{config}");
    }
    assert_eq!(mark("/p/.git/config", 0o644, None), Some("git config"), "what cannot be seen is marked");
    assert_eq!(mark("/p/.gitattributes", 0o644, Some("*.c filter=evil\n")), Some("git attributes"));
    assert_eq!(mark("/p/.gitattributes", 0o644, Some("# *.c filter=evil\n*.sh text eol=lf\n")), None);
}

/// Paths that the policy protects in a home are marked as well.
#[test]
fn what_the_policy_holds_in_the_home() {
    for path in [
        "/h/.config/nvim/init.lua",
        "/h/.local/share/applications/a.desktop",
        "/dots/.config/starship.toml",
        "/h/.config/Code - Insiders/User/tasks.json",
        "/h/.pydistutils.cfg",
        "/h/.gradle/init.d/a.gradle",
        "/h/.docker/cli-plugins/docker-a",
    ] {
        assert!(mark(path, 0o644, None).is_some(), "{path}");
    }
    assert_eq!(mark("/h/.config/i3/config", 0o644, None), Some("startup"));
    for path in ["/p/bin/notes.txt", "/p/R/model.R", "/h/.config/other/x", "/p/node_modules/a/index.js"] {
        assert_eq!(mark(path, 0o644, None), None, "{path}");
    }
}

#[test]
fn every_glob_of_the_table_is_a_pattern() {
    let index = GlobIndex::new();
    let rows = &index.table.rows;
    let globs: usize = rows.iter().map(|row| row.paths.len()).sum();
    assert!(globs > 400, "the table is read");
    let patterns = index.by_name.values().map(Vec::len).sum::<usize>() + index.others.len();
    assert_eq!(patterns, globs + held_globs().count());
    for row in rows {
        assert!(!matches!(&row.only, If::Not(glob) if pattern::ending(glob).is_none()));
    }
}
