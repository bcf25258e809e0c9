//! `nono hooks …`: what it says, and what it leaves.

use std::fs;

use snapbox::str;

use super::world::World;

#[test]
fn installs_and_removes() {
    let world = World::new();
    world.file("home/.claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
    world.golden(
        &[
            "nono hooks status claude-code",
            "nono hooks install claude-code --dry-run",
            "nono hooks install claude-code",
            "nono hooks install claude-code --yes 2>&1 | sed 's/backup-.*/backup-TIME/'",
            "nono hooks install claude-code --yes",
            "nono hooks status claude-code",
            "cat $NONO_HOME/config.toml",
            "nono hooks remove claude-code --dry-run",
            "nono hooks remove claude-code --yes 2>&1 | sed 's/backup-.*/backup-TIME/'",
            "nono hooks remove claude-code --yes",
            "cat ~/.claude/settings.json",
        ],
        str![[r#"
$ nono hooks status claude-code
claude-code  not installed  [TMP]/home/.claude/settings.json
$ nono hooks install claude-code --dry-run
! [nono] To install the hooks of Claude Code:
! [nono]   edit    [TMP]/home/.claude/settings.json  (the hooks)
! [nono]   create  [TMP]/home/.claude/commands/rollback.md  (the /rollback command)
! [nono]   create  [TMP]/home/.claude/CLAUDE.md  (what the agent should know)
! [nono]   create  [TMP]/state/config.toml  (turns checkpoints on)
$ nono hooks install claude-code
! [nono] To install the hooks of Claude Code:
! [nono]   edit    [TMP]/home/.claude/settings.json  (the hooks)
! [nono]   create  [TMP]/home/.claude/commands/rollback.md  (the /rollback command)
! [nono]   create  [TMP]/home/.claude/CLAUDE.md  (what the agent should know)
! [nono]   create  [TMP]/state/config.toml  (turns checkpoints on)
! [nono] error: nothing was changed: not confirmed
! [nono] hint: add --yes to do it without asking
= exit 1
$ nono hooks install claude-code --yes 2>&1 | sed 's/backup-.*/backup-TIME/'
[nono] To install the hooks of Claude Code:
[nono]   edit    [TMP]/home/.claude/settings.json  (the hooks)
[nono]   create  [TMP]/home/.claude/commands/rollback.md  (the /rollback command)
[nono]   create  [TMP]/home/.claude/CLAUDE.md  (what the agent should know)
[nono]   create  [TMP]/state/config.toml  (turns checkpoints on)
[nono] kept a copy: [TMP]/state/backups/settings.json.backup-TIME
[nono] the hooks of Claude Code are installed
$ nono hooks install claude-code --yes
! [nono] Claude Code has nono's hooks already; nothing to do
$ nono hooks status claude-code
claude-code  installed      [TMP]/home/.claude/settings.json
                            calls [TMP]/bin/nono
$ cat $NONO_HOME/config.toml
[checkpoints]
enabled = true
$ nono hooks remove claude-code --dry-run
! [nono] To remove the hooks of Claude Code:
! [nono]   edit    [TMP]/home/.claude/settings.json  (the hooks)
! [nono]   delete  [TMP]/home/.claude/commands/rollback.md  (the /rollback command)
! [nono]   delete  [TMP]/home/.claude/CLAUDE.md  (what the agent should know)
$ nono hooks remove claude-code --yes 2>&1 | sed 's/backup-.*/backup-TIME/'
[nono] To remove the hooks of Claude Code:
[nono]   edit    [TMP]/home/.claude/settings.json  (the hooks)
[nono]   delete  [TMP]/home/.claude/commands/rollback.md  (the /rollback command)
[nono]   delete  [TMP]/home/.claude/CLAUDE.md  (what the agent should know)
[nono] kept a copy: [TMP]/state/backups/settings.json.backup-TIME
[nono] the hooks of Claude Code are removed
$ nono hooks remove claude-code --yes
! [nono] Claude Code has no hooks of nono; nothing to do
$ cat ~/.claude/settings.json
{
  "model": "opus"
}

"#]],
    );
}

#[test]
fn answers_as_json() {
    let world = World::new();
    world.golden(
        &[
            "nono hooks install codex --dry-run --json",
            "nono hooks install codex --yes --json",
            "nono hooks status codex --json",
            "nono hooks status --scope project",
        ],
        str![[r#"
$ nono hooks install codex --dry-run --json
{
  "agent": "codex",
  "changes": [
    {
      "path": "[TMP]/home/.codex/hooks.json",
      "action": "create",
      "purpose": "hooks"
    },
    {
      "path": "[TMP]/home/.codex/skills/rollback/SKILL.md",
      "action": "create",
      "purpose": "command"
    },
    {
      "path": "[TMP]/home/.codex/AGENTS.md",
      "action": "create",
      "purpose": "instructions"
    },
    {
      "path": "[TMP]/state/config.toml",
      "action": "create",
      "purpose": "config"
    }
  ],
  "notes": [
    "Codex runs new hooks only after you trusted them: start codex, type /hooks, and accept nono's"
  ],
  "applied": false,
  "backups": []
}
$ nono hooks install codex --yes --json
{
  "agent": "codex",
  "changes": [
    {
      "path": "[TMP]/home/.codex/hooks.json",
      "action": "create",
      "purpose": "hooks"
    },
    {
      "path": "[TMP]/home/.codex/skills/rollback/SKILL.md",
      "action": "create",
      "purpose": "command"
    },
    {
      "path": "[TMP]/home/.codex/AGENTS.md",
      "action": "create",
      "purpose": "instructions"
    },
    {
      "path": "[TMP]/state/config.toml",
      "action": "create",
      "purpose": "config"
    }
  ],
  "notes": [
    "Codex runs new hooks only after you trusted them: start codex, type /hooks, and accept nono's"
  ],
  "applied": true,
  "backups": []
}
$ nono hooks status codex --json
[
  {
    "agent": "codex",
    "scope": "user",
    "state": "installed",
    "why": null,
    "file": "[TMP]/home/.codex/hooks.json",
    "binary": "[TMP]/bin/nono",
    "binary_exists": true
  }
]
$ nono hooks status --scope project
claude-code  not installed  [TMP]/work/.claude/settings.json
codex        not installed  [TMP]/work/.codex/hooks.json
gemini       not installed  [TMP]/work/.gemini/settings.json
opencode     not installed  [TMP]/work/.opencode/plugins/nono.js
qwen         not installed  [TMP]/work/.qwen/settings.json
cursor       not installed  [TMP]/work/.cursor/hooks.json
copilot      not installed  [TMP]/work/.github/hooks/nono.json
goose        not installed  [TMP]/work/.agents/plugins/nono/hooks/hooks.json

"#]],
    );
}

#[test]
fn refuses_what_it_does_not_understand() {
    let world = World::new();
    world.file("home/.gemini/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n");
    world.file("home/.hermes/config.yaml", "hooks: {pre_tool_call: []}\n");
    world.golden(
        &[
            "nono hooks install gemini --yes",
            "nono hooks status gemini",
            "nono hooks install hermes --yes",
            "nono hooks install hermes --scope project --yes",
            "nono hooks install nobody",
            "cat ~/.gemini/settings.json ~/.hermes/config.yaml",
            "ls -A $NONO_HOME",
        ],
        str![[r#"
$ nono hooks install gemini --yes
! [nono] error: [TMP]/home/.gemini/settings.json:3:3: it is not valid JSON: expected `,` or `}`; nothing was changed
! [nono] hint: correct the file, and try again
= exit 125
$ nono hooks status gemini
gemini       broken         [TMP]/home/.gemini/settings.json
                            [TMP]/home/.gemini/settings.json:3:3: it is not valid JSON: expected `,` or `}`; nothing was changed
= exit 1
$ nono hooks install hermes --yes
! [nono] error: [TMP]/home/.hermes/config.yaml:1: nono cannot extend `hooks` in this form; nothing was changed
! [nono] hint: add this by hand:
! [nono] hooks:
! [nono]   on_session_start:
! [nono]     - command: "env NONO_HOME=[TMP]/state [TMP]/bin/nono hook hermes on_session_start"
! [nono]       timeout: 60
! [nono]   pre_llm_call:
! [nono]     - command: "env NONO_HOME=[TMP]/state [TMP]/bin/nono hook hermes pre_llm_call"
! [nono]       timeout: 60
! [nono]   pre_tool_call:
! [nono]     - command: "env NONO_HOME=[TMP]/state [TMP]/bin/nono hook hermes pre_tool_call"
! [nono]       timeout: 60
! [nono]   post_tool_call:
! [nono]     - command: "env NONO_HOME=[TMP]/state [TMP]/bin/nono hook hermes post_tool_call"
! [nono]       timeout: 60
! [nono]   on_session_end:
! [nono]     - command: "env NONO_HOME=[TMP]/state [TMP]/bin/nono hook hermes on_session_end"
! [nono]       timeout: 60
= exit 125
$ nono hooks install hermes --scope project --yes
! [nono] error: Hermes has no project hooks; use --scope user
= exit 125
$ nono hooks install nobody
! [nono] error: invalid value 'nobody' for '<AGENT>'
! [nono]   [possible values: claude-code, codex, gemini, opencode, hermes, qwen, cursor, copilot, goose, kiro, cline]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ cat ~/.gemini/settings.json ~/.hermes/config.yaml
{
  "a": 1
  "b": 2
}
hooks: {pre_tool_call: []}
$ ls -A $NONO_HOME

"#]],
    );
}

/// What is typed after `/rollback` is text, whatever is in it.
#[test]
fn rollback_as_typed() {
    let world = World::new();
    world.golden(
        &[
            "nono hooks slash '$(touch pwned)'",
            "printf '%s' '; touch pwned' | nono hooks slash",
            "nono hooks slash 'diff'",
            "ls",
        ],
        str![[r#"
$ nono hooks slash '$(touch pwned)'
that is not a checkpoint. /rollback lists; /rollback N restores; /rollback N FILE restores one file; /rollback diff N previews; /rollback undo takes the last restore back; --force and --merge go with N
$ printf '%s' '; touch pwned' | nono hooks slash
that is not a checkpoint. /rollback lists; /rollback N restores; /rollback N FILE restores one file; /rollback diff N previews; /rollback undo takes the last restore back; --force and --merge go with N
$ nono hooks slash 'diff'
that is not a checkpoint. /rollback lists; /rollback N restores; /rollback N FILE restores one file; /rollback diff N previews; /rollback undo takes the last restore back; --force and --merge go with N
$ ls

"#]],
    );
}

/// Every agent, from nothing to nothing.
#[test]
fn leaves_nothing_behind() {
    let world = World::new();
    world.file("work/CLAUDE.md", "# Ours\n");
    for agent in ["claude-code", "codex", "gemini", "opencode", "hermes"] {
        for verb in ["install", "remove"] {
            let said = world.sh(&format!("nono hooks {verb} {agent} --yes"));
            assert!(said.status.success(), "{verb} {agent}: {said:?}");
        }
    }
    let left = world.sh("find ~ -mindepth 1 ! -path '*/.nono*'");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "in the home folder");
    let said = world.sh("nono hooks install claude-code --scope project --yes && nono hooks remove claude-code --scope project --yes");
    assert!(said.status.success(), "{said:?}");
    assert_eq!(fs::read_to_string(world.path("work/CLAUDE.md")).unwrap(), "# Ours\n");
    assert!(!world.path("work/.claude").exists());
}
