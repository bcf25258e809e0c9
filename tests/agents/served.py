"""nono as an MCP server of an agent: put into its settings by its own command, called by the model, answered by the person."""

import json
import subprocess

from agents import call, dialog

# What the agent is told once, outside: the line that docs/guide/mcp.md has.
ADD = {
    "claude": ["mcp", "add", "--scope", "user", "nono", "--", "nono", "mcp"],
    "codex": ["mcp", "add", "nono", "--", "nono", "mcp"],
    "gemini": ["mcp", "add", "--scope", "user", "nono", "nono", "mcp"],
}
BROKEN = "echo broken > a.txt"


def script(tool, given):
    """Codex has one tool, which runs a script that calls the others."""
    return {"tool": "exec", "input": f"text(await tools.{tool}({json.dumps(given)}))"}


STEPS = {
    "claude": [call("Bash", command=BROKEN, description="x"), call("mcp__nono__list_checkpoints"),
               call("mcp__nono__restore_checkpoint", checkpoint="1")],
    "codex": [script("exec_command", {"cmd": BROKEN, "yield_time_ms": 30000}), script("mcp__nono__list_checkpoints", {}),
              script("mcp__nono__restore_checkpoint", {"checkpoint": "1"})],
    "gemini": [call("run_shell_command", command=BROKEN), call("mcp_nono_list_checkpoints"),
               call("mcp_nono_restore_checkpoint", checkpoint="1")],
}


def cases(agent):
    return {"served": STEPS[agent.word]} if agent.word in STEPS else {}


def serves(walk):
    """The model breaks a file, lists the checkpoints and asks for a restore; the file is back once the person said yes."""
    word = walk.agent.word
    if word not in ADD:
        return "-"
    variables = [f"{name}={value}" for name, value in walk.env.items()]
    words = [*walk.world.person(), "env", "-i", *variables, word, *ADD[word]]
    added = subprocess.run(words, cwd=walk.project, text=True, capture_output=True, timeout=120)
    assert added.returncode == 0, added.stdout + added.stderr
    before = walk.read("a.txt")
    walk.start()
    walk.screen.type("case served")
    asked = r"\[nono\] Allow\? \[y/N\]"
    yes = dialog("question", asked, "y", after=1.0)
    came = walk.screen.walk("done with served", (yes, *walk.agent.allow, ALLOW))
    assert came.count("question") == 1, f"the person was asked {came}"
    assert walk.read("a.txt") == before, f"not restored: {walk.read('a.txt')!r}"
    log = walk.log.read_text(errors="replace")
    assert "Checkpoints for " in log or "total" in log, "the list did not reach the model"
    assert "restored 1 path" in log or "turns_undone" in log, "the model was not told"
    walk.end()
    return "ok"


# What agents ask before they call a tool of a server.
ALLOW = dialog("allow", r"(Allow the nono MCP server|Allow execution of MCP tool|Allow once)", "Enter")
