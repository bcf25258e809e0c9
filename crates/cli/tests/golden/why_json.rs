//! The answers of `nono why` for programs.

use snapbox::str;

use super::world::World;

#[test]
fn as_json() {
    let world = World::new();
    world.file("work/data/file", "");
    world.file("home/.ssh/id", "");
    world.golden(
        &[
            "nono why --json --read data --path data/file",
            "nono why --json --path data/file --op write",
            "nono why --json --read . --path data/file --op write",
            "nono why --json --path ~/.ssh/id",
            "nono why --json --allow . --deny data --path data/file",
            "nono why --json --host example.org --port 443",
        ],
        str![[r#"
$ nono why --json --read data --path data/file
{
  "status": "allowed",
  "granted_path": "[TMP]/work/data",
  "access": "read",
  "source": "user",
  "path": "data/file",
  "operation": "read"
}
$ nono why --json --path data/file --op write
{
  "status": "denied",
  "reason": {
    "kind": "not_granted"
  },
  "closest": null,
  "suggestion": {
    "flags": [
      "--write-file",
      "[TMP]/work/data/file"
    ]
  },
  "path": "data/file",
  "operation": "write"
}
$ nono why --json --read . --path data/file --op write
{
  "status": "denied",
  "reason": {
    "kind": "insufficient_access",
    "granted": "read",
    "requested": "write"
  },
  "closest": {
    "original": "[TMP]/work",
    "resolved": "[TMP]/work",
    "access": "read",
    "is_file": false,
    "source": "user"
  },
  "suggestion": {
    "flags": [
      "--write-file",
      "[TMP]/work/data/file"
    ]
  },
  "path": "data/file",
  "operation": "write"
}
$ nono why --json --path ~/.ssh/id
{
  "status": "denied",
  "reason": {
    "kind": "protected",
    "group": "ssh"
  },
  "closest": null,
  "suggestion": {
    "flags": [
      "--bypass-protection",
      "[TMP]/home/.ssh/id",
      "--read-file",
      "[TMP]/home/.ssh/id"
    ]
  },
  "path": "[TMP]/home/.ssh/id",
  "operation": "read"
}
$ nono why --json --allow . --deny data --path data/file
{
  "status": "denied",
  "reason": {
    "kind": "deny_rule",
    "source": "user"
  },
  "closest": {
    "original": "[TMP]/work",
    "resolved": "[TMP]/work",
    "access": "read+write",
    "is_file": false,
    "source": "user"
  },
  "suggestion": null,
  "path": "data/file",
  "operation": "read"
}
$ nono why --json --host example.org --port 443
{
  "status": "denied",
  "host": "example.org",
  "port": 443,
  "reason": "network_blocked",
  "rule": null,
  "closest": null,
  "class": null,
  "still_refused": [],
  "suggestion": {
    "flags": [
      "--allow-domain",
      "example.org:443"
    ]
  }
}

"#]],
    );
}
