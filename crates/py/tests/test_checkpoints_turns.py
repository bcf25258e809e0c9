"""What agents did, turn by turn, and the versions of files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from checkpoint_tools import manager_in

from nono_py import AgentTurns, CheckpointError, CheckpointManager, FileVersions, aio


@pytest.fixture()
def manager(tmp_path: Path) -> CheckpointManager:
    return manager_in(tmp_path, agent="tester", session="one conversation")


def turn(manager: CheckpointManager, name: str, project: Path, changes: dict[str, str]) -> None:
    manager.new_turn(name)
    with manager.call(project, "before edit", tool="edit"):
        for file, text in changes.items():
            (project / file).write_text(text)


@pytest.fixture()
def worked(manager: CheckpointManager, project: Path) -> CheckpointManager:
    """Two turns: the first changes two files, the second one of them and another."""
    lines = [f"{number}\n" for number in range(10)]
    (project / "poem").write_text("".join(lines))
    lines[1] = "one\n"
    turn(manager, "first", project, {"poem": "".join(lines), "made": "x\n"})
    lines[8] = "eight\n"
    turn(manager, "second", project, {"poem": "".join(lines), "later": "x\n"})
    return manager


def test_turns_are_listed(worked: CheckpointManager, project: Path) -> None:
    turns = AgentTurns(worked).list_turns(project)
    assert [one["turn"] for one in turns] == ["second", "first"]
    assert [Path(file["path"]).name for file in turns[1]["files"]] == ["made", "poem"]
    assert turns[1]["stats"] == {"files": 2, "insertions": 2, "deletions": 1}
    assert turns[0]["agent"] == "tester" and turns[0]["calls"][0]["reason"] == "before edit"


def test_one_turn_is_taken_back(worked: CheckpointManager, project: Path) -> None:
    turns = AgentTurns(worked)
    plan = turns.undo(project, 2, dry_run=True)
    assert plan.dry_run and (project / "made").exists()
    done = turns.undo(project, "first")
    assert done.ok and not done.dry_run and done.turns_undone == ["first"]
    lines = (project / "poem").read_text().split()
    assert (lines[1], lines[8]) == ("1", "eight")
    assert not (project / "made").exists() and (project / "later").exists()
    worked.undo(project)
    assert (project / "made").exists()
    part = turns.undo(project, "first", "made")
    assert part.ok and not (project / "made").exists()
    assert (project / "poem").read_text().split()[1] == "one"
    with pytest.raises(CheckpointError) as raised:
        turns.undo(project, "third")
    assert raised.value.kind == "no_such_turn"


def test_versions_of_a_file(worked: CheckpointManager, project: Path) -> None:
    versions = FileVersions(worked)
    found = versions.list_versions(project / "poem")
    assert [(one["by"], one.get("turn")) for one in found] == [("turn", "second"), ("turn", "first"), ("beginning", None)]
    assert versions.read(project / "poem", found[1]["new"]).split()[1] == b"one"
    assert versions.read(project / "poem", found[2]["new"][:10]).split()[1] == b"1"
    with pytest.raises(CheckpointError) as raised:
        versions.read(project / "poem", "ffffffff")
    assert raised.value.kind == "no_such_version"


def test_the_same_for_asyncio(worked: CheckpointManager, project: Path) -> None:
    async def main() -> None:
        manager = aio.CheckpointManager(worked)
        turns, versions = aio.AgentTurns(manager), aio.FileVersions(manager)
        assert await turns.list_turns(project) == AgentTurns(worked).list_turns(project)
        assert (await turns.plan(project, "first")).dry_run
        assert (project / "made").exists()
        assert (await turns.undo(project, "first", dry_run=True)).dry_run and (project / "made").exists()
        assert (await turns.undo(project, "first")).ok
        assert not (project / "made").exists() and (project / "later").exists()
        first = (await versions.list_versions(project / "poem"))[-1]
        assert b"eight" not in await versions.read(project / "poem", first["new"])

    asyncio.run(main())
