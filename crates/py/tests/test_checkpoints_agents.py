"""Checkpoints for those who build agents: turns, calls, and who changed what."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_tools import manager_in, tree

from nono_py import CheckpointError, CheckpointManager


@pytest.fixture()
def manager(tmp_path: Path) -> CheckpointManager:
    return manager_in(tmp_path, agent="tester", session="one conversation")


def edit(manager: CheckpointManager, path: Path, text: str, reason: str = "before edit") -> None:
    with manager.call(path.parent, reason, tool="edit"):
        path.write_text(text)


def test_one_checkpoint_a_turn(manager: CheckpointManager, project: Path) -> None:
    assert manager.turn is None
    assert manager.new_turn("first") == "first" == manager.turn
    one = manager.ensure_checkpoint(project, "before edit", tool="edit", call="c1")
    assert one.taken and one.checkpoint is not None
    assert (one.checkpoint.agent, one.checkpoint.session) == ("tester", "one conversation")
    assert (one.checkpoint.turn, one.checkpoint.tool, one.checkpoint.call) == ("first", "edit", "c1")
    (project / "README").write_text("1\n")
    manager.agent_left(project, call="c1")
    again = manager.ensure_checkpoint(project, "before edit", call="c2")
    assert again.skipped and again.why == "this_turn" and again.checkpoint_id == one.checkpoint.id
    assert again.is_protected and again.checkpoint is None
    manager.agent_left(project, call="c2")
    name = manager.new_turn()
    assert name and name != manager.new_turn()
    assert manager.ensure_checkpoint(project, "before edit").taken
    assert manager.new_turn() and manager.ensure_checkpoint(project, "before edit").why == "unchanged"
    with pytest.raises(ValueError):
        manager.new_turn("")


def test_back_to_before_a_turn(manager: CheckpointManager, project: Path) -> None:
    states = {}
    for turn in ("one", "two", "three"):
        states[turn] = tree(project)
        manager.new_turn(turn)
        edit(manager, project / "README", f"{turn}\n")
        edit(manager, project / turn, "new\n")
    plan = manager.restore(project, turn="two", dry_run=True)
    assert plan.turns_undone == ["two", "three"] and not plan.cannot_tell_conflicts
    outcome = manager.restore(project, turn="two")
    assert tree(project) == states["two"] and outcome.turns_undone == ["two", "three"]
    notes = manager.take_notes()
    assert [note.turns_undone for note in notes] == [["two", "three"]]
    assert sorted(notes[0].files) == ["README", "three", "two"] and notes[0].project == str(project)
    assert notes[0].checkpoint == outcome.checkpoint and not notes[0].came_back
    assert notes[0].restore == outcome.undo_id and notes[0].to_dict()["project"] == str(project)
    assert manager.take_notes() == []
    manager.undo(project)
    assert (project / "README").read_text() == "three\n"
    assert [note.came_back for note in manager.take_notes()] == [True]
    assert manager.find(project, turn="one") == manager.list_checkpoints(project)[-1]
    with pytest.raises(CheckpointError) as raised:
        manager.restore(project, turn="nine")
    assert raised.value.kind == "no_such_turn"


def test_what_a_person_changed_is_kept(manager: CheckpointManager, project: Path) -> None:
    manager.new_turn()
    edit(manager, project / "README", "the agent's\n")
    edit(manager, project / "src" / "main.py", "the agent's\n")
    (project / "README").write_text("a person's\n")
    (project / "mine").write_text("a person's\n")
    outcome = manager.restore(project, 1)
    assert [path for path, _ in outcome.kept] == [str(project / "README"), str(project / "mine")]
    assert all(reason for _, reason in outcome.kept) and not outcome.ok and not outcome.cannot_tell_conflicts
    assert (project / "README").read_text() == "a person's\n" and (project / "mine").exists()
    assert (project / "src" / "main.py").read_text() == "print('hi')\n"
    assert [entry["path"] for entry in outcome.to_dict()["kept"]] == [path for path, _ in outcome.kept]
    forced = manager.restore(project, 1, conflicts="force")
    assert forced.ok and (project / "README").read_text() == "hello\n"
    assert not (project / "mine").exists()
    # Stored either way.
    manager.undo(project)
    assert (project / "README").read_text() == "a person's\n" and (project / "mine").exists()


def test_both_changed_it(manager: CheckpointManager, project: Path) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    (project / "text").write_text("".join(lines))
    manager.new_turn()
    edit(manager, project / "text", "".join(["the agent's\n"] + lines[1:]))
    (project / "text").write_text("".join(["the agent's\n"] + lines[1:19] + ["a person's\n"]))
    assert manager.plan(project, 1, conflicts="merge").merged == [str(project / "text")]
    outcome = manager.restore(project, 1, conflicts="merge")
    assert outcome.merged == [str(project / "text")] and outcome.kept == []
    assert (project / "text").read_text() == "".join(lines[:19] + ["a person's\n"])


def test_both_changed_the_same_line(manager: CheckpointManager, project: Path) -> None:
    manager.new_turn()
    edit(manager, project / "README", "the agent's\n")
    (project / "README").write_text("a person's\n")
    outcome = manager.restore(project, 1, conflicts="merge")
    assert [path for path, _ in outcome.kept] == [str(project / "README")] and outcome.merged == []
    assert (project / "README").read_text() == "a person's\n"
    outcome = manager.restore(project, 1, conflicts="merge_with_markers")
    assert outcome.merged == [str(project / "README")] and outcome.kept == []
    assert "<<<<<<<" in (project / "README").read_text() and "a person's" in (project / "README").read_text()
    with pytest.raises(ValueError, match="conflicts"):
        manager.plan(project, 1, conflicts="perhaps")  # type: ignore[arg-type]


def test_a_call_marks_what_it_left_also_when_it_fails(manager: CheckpointManager, project: Path) -> None:
    manager.new_turn()
    with pytest.raises(ZeroDivisionError):
        with manager.call(project, "before a crash") as call:
            assert call.result is not None and call.result.taken and call.call
            (project / "README").write_text("half done\n")
            raise ZeroDivisionError
    assert (project / "README").read_text() == "half done\n"
    (project / "mine").write_text("a person's\n")
    outcome = manager.restore(project, 1)
    assert [Path(path).name for path, _ in outcome.kept] == ["mine"]
    assert (project / "README").read_text() == "hello\n"
    with pytest.raises(CheckpointError):
        with call:
            pass


def test_a_call_without_protection(manager: CheckpointManager, tmp_path: Path) -> None:
    with manager.call(tmp_path / "home", "x") as call:
        assert call.result is not None and call.result.failed
        assert isinstance(call.result.error, CheckpointError) and call.result.error.kind == "too_broad"
    ran = False
    with pytest.raises(CheckpointError) as raised:
        with manager.call(tmp_path / "home", "x", required=True):
            ran = True
    assert raised.value.kind == "too_broad" and not ran
    assert [path for path, _, _ in manager.status().unprotected] == [str(tmp_path / "home")]


def test_calls_without_a_checkpoint(manager: CheckpointManager, project: Path) -> None:
    manager.agent_begins(project)
    manager.agent_left(project)
    assert manager.status().projects == []
    manager.new_turn()
    edit(manager, project / "README", "1\n")
    (project / "mine").write_text("a person's\n")
    manager.agent_begins(project, call="quiet")
    (project / "quiet").write_text("the agent's\n")
    manager.agent_stopped(project)
    outcome = manager.restore(project, 1)
    assert [Path(path).name for path, _ in outcome.kept] == ["mine"]
    assert not (project / "quiet").exists()


def test_a_repository_is_left_alone(manager: CheckpointManager, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    manager.create(project)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
    (project / "README").write_text("damage\n")
    outcome = manager.restore(project, 1)
    assert (project / ".git" / "HEAD").read_text() == "ref: refs/heads/other\n"
    assert outcome.left_alone == [str(project / ".git")] and (project / "README").read_text() == "hello\n"
    manager.restore(project, 1, with_git=True)
    assert (project / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"


def test_notes_need_an_agent_and_a_session(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        manager_in(tmp_path).take_notes()
