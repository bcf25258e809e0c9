//! A failed command explained to a program.

use serde_json::Value;
use snapbox::str;

use super::world::{World, golden};

#[test]
fn the_footer_as_json() {
    let world = World::new();
    world.file("work/here", "");
    let line = "nono run --diagnostics-json --read-file here -- sh -c 'cat ../home; echo x > here'";
    let text = world.clean(&world.sh(line).err());
    assert!(!text.contains("[nono]"), "{text}");
    let json = text.lines().skip_while(|line| *line != "{").collect::<Vec<_>>().join("\n");
    let mut value: Value = serde_json::from_str(&json).unwrap();
    let grants = value["policy"]["grants"].as_array_mut().unwrap();
    grants.retain(|grant| !grant["source"].as_str().unwrap().starts_with("group:"));
    golden(
        format!("{value:#}"),
        str![[r#"
{
  "exit_code": 2,
  "may_be_due_to_sandbox": true,
  "denials": [
    {
      "kind": "open",
      "path": "[TMP]/home",
      "operation": "read",
      "because": {
        "kind": "policy",
        "reason": {
          "kind": "not_granted"
        }
      },
      "reason": {
        "kind": "not_granted"
      },
      "flags": [],
      "means": null,
      "exact": false,
      "program": null,
      "pid": null,
      "count": null,
      "probe": false
    },
    {
      "kind": "open",
      "path": "[TMP]/work/here",
      "operation": "write",
      "because": {
        "kind": "policy",
        "reason": {
          "kind": "insufficient_access",
          "granted": "read",
          "requested": "write"
        }
      },
      "reason": {
        "kind": "insufficient_access",
        "granted": "read",
        "requested": "write"
      },
      "flags": [
        "--write-file",
        "[TMP]/work/here"
      ],
      "means": null,
      "exact": false,
      "program": null,
      "pid": null,
      "count": null,
      "probe": false
    }
  ],
  "denials_unlisted": 0,
  "denied_unasked": 0,
  "network_denied": false,
  "hosts_denied": [],
  "hosts_denied_unlisted": 0,
  "limits": [],
  "expansions": [],
  "asked": 0,
  "policy": {
    "grants": [
      {
        "path": "[TMP]/work/here",
        "access": "read",
        "is_file": true,
        "source": "user"
      },
      {
        "path": "[TMP]/tmp/nono-[UID]/[SESSION]",
        "access": "read",
        "is_file": false,
        "source": "system"
      },
      {
        "path": "[TMP]/tmp/nono-[UID]/[SESSION]/tmp",
        "access": "read+write",
        "is_file": false,
        "source": "system"
      },
      {
        "path": "[TMP]/bin/nono",
        "access": "read",
        "is_file": true,
        "source": "system"
      }
    ],
    "network": "blocked"
  },
  "flags": [
    {
      "flag": "--allow <path>",
      "meaning": "read and write a folder and everything in it"
    },
    {
      "flag": "--read <path>",
      "meaning": "read it only"
    },
    {
      "flag": "--write <path>",
      "meaning": "write it only"
    },
    {
      "flag": "--allow-net",
      "meaning": "use the network"
    }
  ]
}
"#]],
    );
}

#[test]
fn it_is_there_only_after_a_failure() {
    let world = World::new();
    world.sh("nono run --diagnostics-json -- true").quiet(0);
    world.sh("nono run --diagnostics-json -- sh -c 'kill -9 $$'").quiet(137);
}
