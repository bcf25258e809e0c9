"""Hooks of agents, and which calls are worth a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_tools import tree

from nono_py import CheckpointError, hooks_install, hooks_remove, hooks_status, risk_of


def test_in_and_out_again(tmp_path: Path) -> None:
    home, state, binary = tmp_path / "home", tmp_path / "home" / ".nono", tmp_path / "nono"
    (home / ".claude").mkdir(parents=True)
    settings = home / ".claude" / "settings.json"
    settings.write_text('{"model": "mine"}\n')
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    before = tree(home)
    where: dict[str, Any] = {"binary": binary, "state_dir": state, "home": home}

    def state_of(agent: str) -> str:
        return hooks_status(agent, binary=binary, state_dir=state, home=home)[0].state

    assert state_of("claude-code") == "not installed"
    everybody = hooks_status(binary=binary, state_dir=state, home=home)
    agents = {one.agent for one in everybody}
    assert agents == {"claude-code", "codex", "gemini", "opencode", "hermes", "qwen", "cursor", "goose"}
    with pytest.raises(ValueError, match="Kiro") as by_hand:
        hooks_install("kiro", **where)
    assert by_hand.value.kind == "hooks_by_hand"  # type: ignore[attr-defined]
    planned = hooks_install("claude-code", dry_run=True, **where)
    assert not planned.applied and (str(settings), "edit") in planned.changes
    assert tree(home) == before
    done = hooks_install("claude-code", **where)
    assert done.applied and done.changes == planned.changes and done.backups
    assert str(binary) in settings.read_text() and json.loads(settings.read_text())["model"] == "mine"
    assert state_of("claude-code") == "installed"
    assert hooks_install("claude-code", **where).changes == []
    binary.unlink()
    broken = hooks_status("claude-code", **where)[0]
    assert broken.state == "broken" and broken.binary == str(binary) and broken.binary_exists is False
    assert broken.to_dict()["why"] == broken.why and "broken" in repr(broken)
    gone = hooks_remove("claude-code", **where)
    assert gone.applied and gone.to_dict()["agent"] == "claude-code"
    assert settings.read_text() == '{"model": "mine"}\n'
    with pytest.raises(ValueError, match="nobody"):
        hooks_install("nobody", **where)
    settings.write_text("{broken")
    with pytest.raises(CheckpointError) as raised:
        hooks_install("claude-code", **where)
    assert raised.value.kind == "malformed" and raised.value.path == str(settings)
    assert settings.read_text() == "{broken"


def test_no_nono_to_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CheckpointError) as raised:
        hooks_install("codex", home=tmp_path, state_dir=tmp_path / "state")
    assert raised.value.kind == "no_nono"


def test_what_is_worth_a_checkpoint(tmp_path: Path) -> None:
    risk = risk_of("cd src && rm -rf build", cwd=tmp_path, home="/home/me")
    assert risk is not None
    targets, reason = risk
    assert targets == [str(tmp_path / "src"), str(tmp_path / "src" / "build")] and "rm -rf build" in reason
    assert risk_of("ls -l | wc -l", cwd=tmp_path, home="/home/me") is None
    assert risk_of("./cleanup.sh", cwd=tmp_path, home="/home/me") == ([str(tmp_path)], "before terminal: ./cleanup.sh")
