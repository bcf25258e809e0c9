//! Starting a profile: the template, and the schema that editors check it with.

use snapbox::str;

use super::world::World;

#[test]
fn a_new_one() {
    World::new().golden(
        &[
            "nono profile init mine --extends rust-dev --dry-run",
            "ls ~/.config",
            "nono profile init mine --extends rust-dev",
            "nono profile validate ~/.config/nono/profiles/mine.json",
            "nono run -p mine -- true",
            "nono profile init mine",
            "nono profile init default",
            "nono profile init 'a/b'",
            "nono profile init other --extends no-such",
        ],
        str![[r#"
$ nono profile init mine --extends rust-dev --dry-run
{
  // Use it with: nono run --profile "mine" -- command
  "name": "mine",
  "description": "What this profile is for",

  // Everything of this profile applies first; a list of names works too.
  "extends": "rust-dev",

  "groups": {
    // Groups of tools, such as "git_config", "rust", "node", "python", "go".
    "include": []
  },

  "filesystem": {
    // Directories: allow is read and write. ~, $HOME, $WORKDIR and $XDG_* are expanded.
    // A path that may be missing: {"path": "~/data", "optional": true}
    "allow": [],
    "read": []
    // Single files: "allow_file", "read_file", "write_file".
    // Closed even inside what is granted: "deny": ["$WORKDIR/.env"]
    // Protected paths such as ~/.ssh need both a grant and: "bypass_protection": ["~/.ssh"]
  },

  "workdir": {
    // none, read, write or readwrite
    "access": "readwrite"
  },

  "network": {
    // false opens the network
    "block": true
  },

  "environment": {
    // Names, or beginnings such as "MY_*". Secrets pass only by their full name.
    "allow_vars": [],
    "set_vars": {}
  }
}
$ ls ~/.config
! ls: cannot access '[TMP]/home/.config': No such file or directory
= exit 2
$ nono profile init mine --extends rust-dev
[TMP]/home/.config/nono/profiles/mine.json
use it with: nono run -p mine -- command
$ nono profile validate ~/.config/nono/profiles/mine.json
[TMP]/home/.config/nono/profiles/mine.json: valid
$ nono run -p mine -- true
$ nono profile init mine
! [nono] error: [TMP]/home/.config/nono/profiles/mine.json already exists
! [nono] hint: choose another name, or edit it
= exit 125
$ nono profile init default
! [nono] error: default is the name of a built-in profile
! [nono] hint: choose another name
= exit 125
$ nono profile init 'a/b'
! [nono] error: "a/b" is not a profile name: use letters, digits, '-' and '_'
= exit 2
$ nono profile init other --extends no-such
! [nono] error: there is no profile "no-such"
! [nono] hint: nono profile list shows the profiles there are
= exit 125

"#]],
    );
}

#[test]
fn the_schema_knows_every_key() {
    let world = World::new();
    let schema = world.sh("nono profile schema").out();
    for key in [
        "extends",
        "groups",
        "include",
        "exclude",
        "filesystem",
        "allow",
        "read",
        "write",
        "allow_file",
        "read_file",
        "write_file",
        "deny",
        "bypass_protection",
        "network",
        "block",
        "allow_domain",
        "workdir",
        "access",
        "environment",
        "allow_vars",
        "deny_vars",
        "set_vars",
        "rollback",
        "exclude_patterns",
        "exclude_globs",
        "enabled",
        "force_include",
        "use_gitignore",
        "hooks",
        "interactive",
        "security",
        "capability_elevation",
    ] {
        assert!(schema.contains(&format!("\"{key}\": ")), "{key}");
    }
    let parsed: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(parsed["additionalProperties"], false);
}
