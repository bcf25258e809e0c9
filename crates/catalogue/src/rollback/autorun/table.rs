//! Table of autorun files. A row: paths, label, and when the file runs. The first matching row counts.

use super::git_config;

pub(super) struct Row {
    /// Globs in lower case over the last names of a path, separated by blanks.
    pub(super) paths: &'static str,
    pub(super) only: If,
    pub(super) what: &'static str,
    pub(super) why: &'static str,
}

/// Further condition of a row.
pub(super) enum If {
    Always,
    Executable,
    /// The name does not match this glob.
    Not(&'static str),
    /// The content has something that runs.
    Holds(fn(&[u8]) -> bool),
}

const fn row(paths: &'static str, what: &'static str, why: &'static str) -> Row {
    Row { paths, only: If::Always, what, why }
}

const fn row_if(only: If, paths: &'static str, what: &'static str, why: &'static str) -> Row {
    Row { paths, only, what, why }
}

pub(super) const TABLE: &[Row] = &[
    // git
    // Sample hooks shipped with git do not run under that name.
    row_if(
        If::Not("*.sample"),
        "*.git/**/hooks/*",
        "git hook",
        "git runs it at commits, checkouts, merges or pushes",
    ),
    row(
        ".githooks/** .husky/** lefthook.yml .lefthook.yml lefthook.yaml .lefthook/**",
        "git hook",
        "git runs it at commits, checkouts, merges or pushes",
    ),
    row_if(If::Executable, HOOK_NAMES, "git hook", "git runs it where its hooks folder is this one"),
    row_if(
        If::Holds(git_config::runs_commands),
        ".git/config.worktree *.git/config .git/modules/**/config .git/worktrees/**/config.worktree \
         .gitconfig .config/git/config",
        "git config",
        "it has a setting with which git runs a command",
    ),
    row_if(
        If::Holds(git_config::runs_commands),
        ".gitmodules",
        "git config",
        "git runs a command of it when submodules are updated",
    ),
    row_if(
        If::Holds(git_config::names_a_driver),
        ".gitattributes .git/info/attributes .config/git/attributes",
        "git attributes",
        "git sends these files through a filter or driver that its config names",
    ),
    row(
        ".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .overcommit.yml \
         .lintstagedrc* lint-staged.config.* .hg/hgrc .hgrc",
        "commit hook",
        "its hooks run at the next commit",
    ),
    // editors
    row(
        ".vscode/tasks.json .zed/tasks.json",
        "editor task",
        "the editor runs it, some tasks when the folder is opened",
    ),
    row(
        ".vscode/settings.json .vscode/launch.json .vscode/extensions.json .vscode/mcp.json \
         *.code-workspace .zed/settings.json",
        "editor settings",
        "the editor takes programs to run from it",
    ),
    row(".idea/** *.run.xml", "editor settings", "the IDE takes what it runs from it"),
    row(
        ".dir-locals.el .dir-locals-2.el .emacs .emacs.d/** .vimrc .exrc .nvimrc .nvim.lua .nvim/** \
         .vim/** .config/nvim/** .config/helix/** .helix/** .lazy.lua",
        "editor settings",
        "the editor evaluates it",
    ),
    // the shell in a folder, and the shell itself
    row(".envrc", "shell environment", "direnv runs it when a shell enters the folder"),
    row(
        "mise.toml .mise.toml .mise/** .tool-versions devbox.json flake.nix shell.nix default.nix \
         .autoenv .autoenv.zsh",
        "shell environment",
        "it decides which programs run in this folder",
    ),
    row(
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile \
         .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xprofile \
         .xinitrc .xsession .xsessionrc .pam_environment .config/fish/** .config/nushell/** \
         .bashrc.d/** .zshrc.d/** .oh-my-zsh/** etc/profile etc/profile.d/* etc/bash.bashrc etc/zsh/* \
         .config/environment.d/* etc/environment .tmux.conf .config/tmux/tmux.conf .screenrc",
        "shell startup",
        "every new shell or login runs it",
    ),
    // the system and the desktop
    row(
        "systemd/user/** systemd/system/** etc/init.d/* etc/rc.local",
        "system service",
        "systemd starts it by itself",
    ),
    row(
        "autostart/*.desktop applications/*.desktop library/launchagents/* library/launchdaemons/* \
         plasma-workspace/env/* dbus-1/services/*",
        "autostart",
        "the desktop starts it",
    ),
    row(
        "crontab etc/cron.*/* etc/anacrontab spool/cron/** *.crontab",
        "cron job",
        "cron runs it at its times",
    ),
    row(
        ".ssh/config .ssh/config.d/** .ssh/rc .ssh/environment etc/ssh/**",
        "ssh config",
        "ssh runs commands of it when it connects",
    ),
    row(
        ".ssh/authorized_keys .ssh/authorized_keys2 .rhosts .shosts",
        "ssh access",
        "the keys and hosts it names can log in",
    ),
    row(
        "etc/sudoers etc/sudoers.d/* etc/ld.so.preload etc/ld.so.conf etc/ld.so.conf.d/* etc/pam.d/*",
        "system setting",
        "programs load or run what it names",
    ),
    // nono itself
    row(
        ".nono/profile.json",
        "sandbox profile",
        "nono asks whether to open what it says at the next run here",
    ),
    // agents
    row(
        "claude.md claude.local.md agents.md agents.override.md agent.md gemini.md qwen.md warp.md \
         crush.md .cursorrules .windsurfrules .clinerules .clinerules/** .roorules .roo/** .rules \
         .goosehints .github/copilot-instructions.md .github/instructions/** .github/prompts/** \
         .github/chatmodes/** .github/agents/** .junie/** skill.md",
        "agent instructions",
        "an agent follows it the next time it works here",
    ),
    row(
        ".mcp.json mcp.json .claude/** .claude.json .cursor/** .codex/** .gemini/** .windsurf/** \
         .codeium/** .aider* .continue/** .opencode/** opencode.json opencode.jsonc .qwen/** \
         .amazonq/** .kiro/** .crush.json .config/opencode/** .config/crush/** .config/goose/** \
         .agents/** .nono/** .config/nono/**",
        "agent settings",
        "an agent takes commands, tools or permissions from it",
    ),
    // packages and builds
    row(
        "package.json .npmrc .yarnrc .yarnrc.yml .yarn/plugins/** .yarn/releases/** .pnpmfile.cjs \
         pnpm-workspace.yaml bunfig.toml binding.gyp",
        "package script",
        "package managers run scripts of it, some at every install",
    ),
    row("composer.json", "package script", "composer runs scripts of it"),
    row(
        "webpack.config.* vite.config.* vitest.config.* vitest.workspace.* rollup.config.* \
         jest.config.* babel.config.* .babelrc* .eslintrc.js .eslintrc.cjs eslint.config.* \
         prettier.config.* .prettierrc.js .prettierrc.cjs postcss.config.* tailwind.config.* \
         next.config.* nuxt.config.* svelte.config.* astro.config.* karma.conf.* playwright.config.* \
         cypress.config.* metro.config.* gulpfile.* gruntfile.*",
        "build script",
        "build and test tools run or obey it",
    ),
    row("conftest.py", "test setup", "pytest runs it before every test"),
    row("sitecustomize.py usercustomize.py *.pth", "Python startup", "every start of Python runs it"),
    row(
        "setup.py noxfile.py tox.ini fabfile.py dodo.py hatch_build.py pdm_build.py .pdbrc sconstruct \
         sconscript wscript pip.conf .pip/**",
        "build script",
        "Python's build and test tools run or obey it",
    ),
    row(
        "build.rs .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain",
        "build script",
        "cargo runs or obeys it at every build",
    ),
    row(
        "makefile makefile.* gnumakefile bsdmakefile *.mk *.mak kbuild cmakelists.txt *.cmake \
         cmakepresets.json cmakeuserpresets.json meson.build configure autogen.sh bootstrap.sh \
         build.ninja justfile .justfile *.just taskfile.yml taskfile.yaml taskfile.dist.* magefile.go \
         build.bazel workspace.bazel module.bazel .bazelrc *.bzl buck .buckconfig build.zig earthfile \
         tup*file build.sh",
        "build script",
        "the next build runs it",
    ),
    row(
        "rakefile rakefile.rb *.rake gemfile *.gemspec .pryrc .irbrc .bundle/config guardfile capfile \
         vagrantfile podfile fastfile dangerfile brewfile .rspec spec_helper.rb config.ru",
        "build script",
        "Ruby's tools run it",
    ),
    row(
        "build.gradle build.gradle.kts settings.gradle settings.gradle.kts init.gradle *.gradle \
         *.gradle.kts gradlew gradlew.bat gradle/wrapper/** gradle-wrapper.* pom.xml mvnw mvnw.cmd \
         .mvn/** build.xml build.sbt project/*.sbt project/*.scala build.sc build.mill .sbtopts \
         .jvmopts",
        "build script",
        "the next build runs it",
    ),
    row(
        "mix.exs rebar.config setup.hs package.swift *.csproj *.fsproj *.vbproj *.vcxproj *.props \
         *.targets nuget.config project.clj makefile.pl build.pl dub.json *.nimble *.nims *.pbxproj",
        "build script",
        "the next build runs it",
    ),
    // elsewhere: CI, containers
    row(
        ".github/workflows/** .github/actions/** action.yml action.yaml .gitlab-ci.yml .gitlab/** \
         .gitlab-ci/** .circleci/** jenkinsfile jenkinsfile.* azure-pipelines.yml \
         azure-pipelines.yaml .azure-pipelines/** .travis.yml appveyor.yml .appveyor.yml .drone.yml \
         .woodpecker.yml .woodpecker/** bitbucket-pipelines.yml .buildkite/** .cirrus.yml \
         .forgejo/workflows/** .gitea/workflows/** .teamcity/** cloudbuild.yaml buildspec.yml \
         codefresh.yml .semaphore/** .builds/*.yml .build.yml .goreleaser.yml .goreleaser.yaml",
        "CI",
        "it runs with the project's secrets after the next push",
    ),
    row(
        "dockerfile dockerfile.* *.dockerfile containerfile containerfile.* docker-compose*.yml \
         docker-compose*.yaml compose*.yml compose*.yaml .devcontainer/** .devcontainer.json \
         devcontainer.json docker-bake.* .gitpod.yml procfile procfile.* skaffold.yaml tiltfile \
         .ddev/** devspace.yaml devfile.yaml",
        "container",
        "it runs when the container is built or started",
    ),
    row(
        "ansible.cfg terragrunt.hcl .terraformrc .gdbinit .lldbinit .gdbearlyinit .psqlrc .sqliterc \
         .mailcap .rprofile .renviron .ghci .ocamlinit .npm-init.js .screenlayout/** \
         .julia/config/startup.jl",
        "tool settings",
        "a tool obeys it where it starts in this folder",
    ),
    // programs
    row_if(
        If::Executable,
        "bin/* sbin/* .bin/* libexec/* shims/* .local/bin/**",
        "program",
        "it is a command in a folder where commands are looked for",
    ),
];

const HOOK_NAMES: &str = "hooks/applypatch-msg hooks/pre-applypatch hooks/post-applypatch hooks/pre-commit \
         hooks/pre-merge-commit hooks/prepare-commit-msg hooks/commit-msg hooks/post-commit \
         hooks/pre-rebase hooks/post-checkout hooks/post-merge hooks/pre-push hooks/pre-receive \
         hooks/update hooks/proc-receive hooks/post-receive hooks/post-update \
         hooks/reference-transaction hooks/push-to-checkout hooks/pre-auto-gc hooks/post-rewrite \
         hooks/sendemail-validate hooks/fsmonitor-watchman hooks/post-index-change";
