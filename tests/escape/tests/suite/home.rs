//! The whole home is granted. Autorun files in it are read and not written, whether they exist yet or not; secrets are
//! not read. The lists are written independently of the policy's.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::harness::attack::{BARE, has_bwrap, skip};
use crate::harness::world::World;
use crate::harness::{Mode, controls_only};

/// Files that run without a further request: by a shell, an editor, a desktop, a build, the next command that is typed.
const RUNS_LATER: &[&str] = &[
    ".bashrc",
    ".zshrc",
    ".profile",
    ".inputrc",
    ".oh-my-zsh/oh-my-zsh.sh",
    ".bash_completion",
    ".config/starship.toml",
    ".config/direnv/direnvrc",
    ".gitconfig",
    ".config/git/config",
    ".config/git/hooks/pre-commit",
    ".git-templates/hooks/post-checkout",
    ".hgrc",
    ".vimrc",
    ".vim/plugin/a.vim",
    ".config/nvim/init.lua",
    ".local/share/nvim/site/plugin/a.lua",
    ".emacs",
    ".emacs.d/init.el",
    ".nanorc",
    ".config/helix/config.toml",
    ".config/Code/User/tasks.json",
    ".config/Code/User/settings.json",
    ".vscode/extensions/a/main.js",
    ".vscode-server/extensions/a/main.js",
    ".cursor/extensions/a/main.js",
    ".config/JetBrains/IdeaIC/options/a.xml",
    ".local/share/JetBrains/IdeaIC/a/a.jar",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/bin/cargo",
    ".rustup/settings.toml",
    ".npmrc",
    ".yarnrc",
    ".yarn/releases/yarn.cjs",
    ".node_modules/a/index.js",
    ".npm-global/bin/a",
    ".nvm/nvm.sh",
    ".bun/bin/bun",
    ".deno/bin/deno",
    ".local/share/pnpm/a",
    ".config/pip/pip.conf",
    ".pydistutils.cfg",
    ".pdbrc",
    ".ipython/profile_default/startup/a.py",
    ".local/lib/python3.13/site-packages/usercustomize.py",
    ".local/lib/python3.13/site-packages/a.pth",
    ".pyenv/shims/python",
    ".bundle/config",
    ".gemrc",
    ".irbrc",
    ".pryrc",
    ".rbenv/shims/ruby",
    ".m2/settings.xml",
    ".gradle/init.d/a.gradle",
    ".gradle/gradle.properties",
    ".sbt/1.0/plugins/a.sbt",
    ".sdkman/bin/sdkman-init.sh",
    ".ghci",
    ".Rprofile",
    ".gdbinit",
    ".lldbinit",
    ".psqlrc",
    ".screenrc",
    ".tmux.conf",
    ".config/tmux/tmux.conf",
    ".config/kitty/kitty.conf",
    ".docker/cli-plugins/docker-a",
    ".ansible.cfg",
    ".ssh/config",
    ".ssh/rc",
    ".ssh/authorized_keys",
    ".rhosts",
    ".forward",
    ".xprofile",
    ".xinitrc",
    ".pam_environment",
    ".config/autostart/a.desktop",
    ".config/environment.d/a.conf",
    ".config/systemd/user/a.service",
    ".local/share/applications/a.desktop",
    ".local/share/dbus-1/services/a.service",
    ".config/i3/config",
    ".local/bin/ls",
    "bin/ls",
    "go/bin/gopls",
    ".asdf/shims/node",
    ".local/share/mise/shims/node",
    ".claude.json",
    ".aider.conf.yml",
];

/// Credentials and private messages.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".gnupg/private-keys-v1.d/a.key",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".aws/credentials",
    ".azure/msal_token_cache.json",
    ".kube/config",
    ".docker/config.json",
    ".config/gcloud/credentials.db",
    ".terraform.d/credentials.tfrc.json",
    ".fly/config.yml",
    ".config/netlify/config.json",
    ".config/doctl/config.yaml",
    ".config/.wrangler/config/default.toml",
    ".cloudflared/cert.pem",
    ".config/ngrok/ngrok.yml",
    ".supabase/access-token",
    ".railway/config.json",
    ".config/configstore/firebase-tools.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".config/github-copilot/apps.json",
    ".copilot/config.json",
    ".local/share/opencode/auth.json",
    ".aider.conf.yml",
    ".aider/oauth-keys.env",
    ".continue/config.yaml",
    ".cursor/mcp.json",
    ".config/cursor/auth.json",
    ".config/Code/User/globalStorage/state.vscdb",
    ".config/goose/secrets.yaml",
    ".config/JetBrains/IdeaIC/c.kdbx",
    ".config/1Password/1password.sqlite",
    ".config/op/config",
    ".config/Bitwarden CLI/data.json",
    ".config/keepassxc/keepassxc.ini",
    ".password-store/a.gpg",
    ".local/share/keyrings/login.keyring",
    ".local/share/kwalletd/kdewallet.kwl",
    ".bitcoin/wallet.dat",
    ".electrum/wallets/default_wallet",
    ".ethereum/keystore/a",
    ".bitmonero/a",
    ".config/solana/id.json",
    ".config/Exodus/exodus.wallet/seed.seco",
    ".mozilla/firefox/a/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".config/Slack/Cookies",
    ".config/Signal/config.json",
    ".config/discord/Local Storage/a",
    ".local/share/TelegramDesktop/tdata/a",
    ".thunderbird/a/logins.json",
    ".mbsyncrc",
    ".muttrc",
    ".bash_history",
    ".python_history",
    ".env",
];

/// Folders of the home itself that lead to them.
const PARENTS: &[&str] = &[".config", ".local", ".cargo", ".gradle", "go", ".bun", ".docker", ".vim"];

const HOME: &str = "users/home";

/// What an attacker does who controls the command: five ways to change each of the names that are given to it.
const WRITES: &str = r#"
for name in "$@"; do
    f=$HOME/$name; d=${f%/*}
    echo planted >>"$f"
    printf planted >"$PWD/new" && mv -f "$PWD/new" "$f"
    ln -f "$PWD/own" "$f"
    ln -sfn "$PWD/own" "$f"
    rm -rf "$f"; mkdir -p "$d" && echo planted >"$f"
    [ "$d" = "$HOME" ] || { mv "$d" "$d.away" && cp -a "$d.away" "$d" && echo planted >"$f"; }
done 2>/dev/null
"#;
const READS: &str = r#"
for name in "$@"; do
    f=$HOME/$name
    cat "$f" || { ln "$f" "$PWD/l$$" && cat "$PWD/l$$"; } || { mv "$f" "$PWD/m$$" && cat "$PWD/m$$"; }
    echo ": $name"
done 2>/dev/null
"#;
const MOVES: &str = r#"
for name in "$@"; do
    mv "$HOME/$name" "$HOME/$name.away" || mv "$HOME/$name" "$PWD/away"
done 2>/dev/null
"#;

/// A run with the home granted, in one of the modes, or none; `bare`: on a machine without namespaces.
#[derive(Clone, Copy, Debug)]
struct How {
    mode: Option<Mode>,
    bare: bool,
}

fn ways() -> Vec<How> {
    let mut ways: Vec<How> = Mode::ALL.iter().map(|mode| How { mode: Some(*mode), bare: false }).collect();
    if has_bwrap() {
        ways.push(How { mode: Some(Mode::Run), bare: true });
    } else {
        assert!(skip("the home without namespaces", "bwrap is not installed").is_empty());
    }
    ways.retain(|_| !controls_only());
    ways
}

const CONTROL: How = How { mode: None, bare: false };

impl How {
    fn run(self, world: &World, flags: &[&str], script: &str, names: &[&str]) -> Output {
        let mut words: Vec<String> = Vec::new();
        if self.bare {
            words.extend(BARE.split(' ').map(str::to_owned));
        }
        if let Some(mode) = self.mode {
            words.push(world.expand("{bin}/nono"));
            words.extend(mode.words().iter().map(ToString::to_string));
            words.extend(["--allow", "{home}", "--allow", "{prj}"].map(|word| world.expand(word)));
            words.extend(flags.iter().map(|flag| world.expand(flag)));
            words.push("--".to_owned());
        }
        words.extend(["/bin/sh", "-c", script, "sh"].map(str::to_owned));
        words.extend(names.iter().map(ToString::to_string));
        let mut command: Command = world.command(Path::new(&words[0]));
        let output = command.args(&words[1..]).stdin(Stdio::null()).output().expect("run");
        assert_ne!(output.status.code(), Some(125), "{self:?} did not start: {output:?}");
        output
    }
}

/// A home that has all of `names`, with the secret in each.
fn filled(names: &[&str]) -> World {
    let world = World::new("/var/tmp", false);
    for name in names {
        let path = world.path(HOME).join(name);
        let folder = path.parent().expect("a folder");
        std::fs::create_dir_all(folder).expect("mkdir");
        std::fs::write(&path, &world.secret).expect("plant");
        world.own(&path, 0o600);
        for dir in folder.ancestors().take_while(|dir| *dir != world.path(HOME)) {
            world.own(dir, 0o755);
        }
    }
    world
}

/// Names that are not as they were planted.
fn changed(world: &World, names: &[&'static str]) -> Vec<&'static str> {
    let same = |name: &&str| {
        let path = world.path(HOME).join(name);
        !path.is_symlink() && std::fs::read(path).is_ok_and(|text| text == world.secret.as_bytes())
    };
    names.iter().filter(|name| !same(name)).copied().collect()
}

fn there(world: &World, names: &[&'static str]) -> Vec<&'static str> {
    let there = |name: &&&str| world.path(HOME).join(name).symlink_metadata().is_ok();
    names.iter().filter(there).copied().collect()
}

#[test]
fn what_runs_later_is_not_written() {
    let world = filled(RUNS_LATER);
    CONTROL.run(&world, &[], WRITES, RUNS_LATER);
    assert_eq!(changed(&world, RUNS_LATER), RUNS_LATER, "control failed: proves nothing");
    for how in ways() {
        let world = filled(RUNS_LATER);
        let output = how.run(&world, &[], WRITES, RUNS_LATER);
        assert!(
            changed(&world, RUNS_LATER).is_empty(),
            "{how:?}: {:?} {output:?}",
            changed(&world, RUNS_LATER)
        );
    }
}

#[test]
fn what_runs_later_is_not_made_where_it_is_absent() {
    let world = filled(&[]);
    CONTROL.run(&world, &[], WRITES, RUNS_LATER);
    assert_eq!(there(&world, RUNS_LATER), RUNS_LATER, "control failed: proves nothing");
    // Their parent folders exist, or they do not.
    let beside: Vec<String> =
        RUNS_LATER.iter().filter_map(|name| Some(format!("{}/other", name.rsplit_once('/')?.0))).collect();
    let beside: Vec<&str> = beside.iter().map(String::as_str).collect();
    for how in ways() {
        for around in [&[], beside.as_slice()] {
            let world = filled(around);
            how.run(&world, &[], WRITES, RUNS_LATER);
            assert!(there(&world, RUNS_LATER).is_empty(), "{how:?}: {:?}", there(&world, RUNS_LATER));
        }
    }
}

#[test]
fn folders_on_the_way_are_not_moved() {
    let world = filled(RUNS_LATER);
    CONTROL.run(&world, &[], MOVES, PARENTS);
    assert!(there(&world, PARENTS).is_empty(), "control failed: proves nothing");
    for how in ways() {
        let world = filled(RUNS_LATER);
        how.run(&world, &[], MOVES, PARENTS);
        assert_eq!(there(&world, PARENTS), PARENTS, "{how:?}");
    }
}

#[test]
fn secrets_of_the_home_are_not_read() {
    let leaked = |output: &Output, secret: &str| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter(|line| line.contains(secret));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let world = filled(SECRETS);
    let output = CONTROL.run(&world, &[], READS, SECRETS);
    assert_eq!(leaked(&output, &world.secret).len(), SECRETS.len(), "control failed: proves nothing");
    for how in ways() {
        let world = filled(SECRETS);
        let output = how.run(&world, &[], READS, SECRETS);
        let leaked = leaked(&output, &world.secret);
        assert!(leaked.is_empty(), "{how:?}: {leaked:#?}");
    }
}

/// Writing through a link is writing its target; and an autorun file may be reached through the link.
#[test]
fn links_to_what_runs_later_are_held_with_it() {
    let linked = || {
        let world = filled(&["dots/vimrc", "dots/bin/a", "go/other"]);
        for (name, target) in [(".vimrc", "dots/vimrc"), ("go/bin", "../dots/bin")] {
            let path = world.path(HOME).join(name);
            std::os::unix::fs::symlink(target, &path).expect("link");
            if let Some(user) = world.user {
                std::os::unix::fs::lchown(&path, Some(user), Some(user)).expect("chown");
            }
        }
        world
    };
    let names = ["dots/vimrc", "dots/bin/a"];
    let script = r#"
        cd "$HOME"
        echo planted >>dots/vimrc; echo planted >>dots/bin/a; echo planted >go/bin/new
        rm go/bin && mkdir go/bin && echo planted >go/bin/new
    "#;
    let world = linked();
    CONTROL.run(&world, &[], script, &[]);
    assert_eq!(changed(&world, &names), names, "control failed: proves nothing");
    assert!(world.path(HOME).join("go/bin/new").exists(), "control failed: proves nothing");
    for how in ways() {
        let world = linked();
        how.run(&world, &[], script, &[]);
        assert!(changed(&world, &names).is_empty(), "{how:?}");
        assert!(world.path(HOME).join("go/bin").is_symlink(), "{how:?}");
        assert!(!world.path(HOME).join("go/bin/new").exists(), "{how:?}");
    }
}

/// A path that is closed as a secret or as autorun is open for its own agent, and by a bypass; reading autorun files,
/// and the rest of the home, stays open.
#[test]
fn what_is_meant_stays_open() {
    let script = r#"
        set -e
        for name in "$@"; do echo mine >"$HOME/$name"; grep -q mine "$HOME/$name"; done
        cat "$HOME/.vimrc" "$HOME/.config/git/config" "$HOME/.local/bin/ls" >/dev/null
        mkdir "$HOME/src/new"
    "#;
    let around = [".vimrc", ".config/git/config", ".local/bin/ls", "src/a", ".config/other/a", ".cache/a"];
    let open = ["src/a", ".config/other/a", ".cache/a", ".claude/.credentials.json", ".gitconfig"];
    for how in ways() {
        let world = filled(&around);
        let names = [".claude/.credentials.json", ".gitconfig"];
        for name in names {
            let path = world.path(HOME).join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("mkdir");
            std::fs::write(&path, "x").expect("plant");
            world.own(&path, 0o600);
        }
        world.own(&world.path(HOME).join(".claude"), 0o755);
        // Only a supervisor has the hosts of an agent's profile.
        let own: &[&str] = match how {
            How { mode: Some(Mode::Run), bare: false } => &["-p", "claude-code"],
            _ => &["--bypass-protection", "{home}/.claude/.credentials.json"],
        };
        let flags = [own, &["--bypass-protection", "{home}/.gitconfig"]].concat();
        let output = how.run(&world, &flags, script, &open);
        assert!(output.status.success(), "{how:?}: {output:?}");
    }
}
