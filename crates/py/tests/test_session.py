"""Supervised runs: what goes in, what comes out, and what is left behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nono_py as nono

pytestmark = pytest.mark.integration

SH = "/bin/sh"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """nono's own folder, for this test alone."""
    home = tmp_path / "state"
    monkeypatch.setenv("NONO_HOME", str(home))
    return home


@pytest.fixture()
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("hidden words\n")
    return file


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything that a restore has to bring back."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        name = str(path.relative_to(root))
        if stat.S_ISLNK(info.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            found[name] = ("dir", stat.S_IMODE(info.st_mode))
        else:
            found[name] = ("file", stat.S_IMODE(info.st_mode), info.st_mtime_ns, path.read_bytes())
    return found


def sh(script: str, **options: Any) -> nono.SessionReport:
    return nono.run([SH, "-c", script], capture_output=True, **options)


def test_output_and_code_are_the_commands_own(project: Path) -> None:
    report = sh("echo out; echo err >&2; exit 3", allow=[project])
    assert (report.stdout, report.stderr, report.exit_code) == (b"out\n", b"err\n", 3)
    assert not report.ok and report.signal is None and report.limit is None
    assert not report.stopped and not report.cancelled and not report.truncated
    assert report.changes is None and report.snapshot_count == 0
    ended = sh("kill -KILL $$")
    assert (ended.exit_code, ended.signal) == (137, 9)


def test_output_is_inherited_unless_it_is_captured(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = nono.run([SH, "-c", "echo seen; echo heard >&2"], allow=[project])
    assert (report.stdout, report.stderr) == (None, None)
    assert capfd.readouterr() == ("seen\n", "heard\n")


def test_input_is_given_whatever_its_size() -> None:
    data = os.urandom(3 << 20)
    report = nono.run(["cat"], stdin=data, capture_output=True)
    assert report.stdout == data
    assert nono.run(["cat"], stdin=b"", capture_output=True).stdout == b""
    # A command that does not read is no failure.
    assert nono.run(["true"], stdin=data, capture_output=True).ok


def test_too_much_output_is_dropped_and_said() -> None:
    report = sh("head -c 1000000 /dev/zero; echo end >&2", max_output=10)
    assert (report.stdout, report.stderr, report.truncated) == (b"\0" * 10, b"end\n", True)


def test_environment_and_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSED", "yes")
    monkeypatch.setenv("KEPT_BACK", "no")
    report = sh(
        "pwd; echo $SET $PASSED $KEPT_BACK", allow=[project], workdir=project, env={"SET": "1"}, pass_env=["PASSED"]
    )
    assert report.stdout == f"{project}\n1 yes\n".encode()


def test_what_was_not_granted_is_refused_and_explained(project: Path, secret: Path) -> None:
    report = nono.run(["cat", secret], allow=[project], capture_output=True)
    assert report.exit_code != 0 and b"hidden" not in (report.stdout or b"")
    [denial] = [denial for denial in report.denials if denial.path == str(secret)]
    assert denial.kind == "open" and denial.reason
    assert denial.hint is not None and str(secret) in denial.hint
    assert str(secret) in report.explain()
    # The hint is a keyword that opens it.
    keywords: dict[str, Any] = eval(f"dict({denial.hint})")
    opened = nono.run(["cat", secret], allow=[project], capture_output=True, **keywords)
    assert opened.stdout == b"hidden words\n" and opened.ok


def test_a_closed_path_inside_a_grant(project: Path) -> None:
    (project / "src" / "key").write_text("k")
    report = sh(f"cat {project}/src/main.py; cat {project}/src/key", allow=[project], deny=[project / "src" / "key"])
    assert report.stdout == b"print('hi')\n" and report.exit_code != 0


def test_writing_needs_a_write_grant(project: Path) -> None:
    report = sh(f"echo x > {project}/new", read=[project])
    assert report.exit_code != 0 and not (project / "new").exists()
    assert sh(f"echo x > {project}/new", allow=[project]).ok
    assert (project / "new").read_text() == "x\n"


CHANGES = """
cd {project}
echo more >> README
rm src/main.py
mkdir -p deep/er && echo new > deep/er/file
chmod 600 run.sh
ln -sf run.sh link
rmdir empty
"""


def test_a_restore_is_exact_and_can_be_undone(project: Path) -> None:
    before = tree(project)
    session = nono.Session([SH, "-c", CHANGES.format(project=project)], allow=[project], rollback=True)
    report = session.run()
    after = tree(project)
    assert report.ok and before != after
    changes = report.changes
    assert changes is not None and report.snapshot_count >= 2
    kinds = {os.path.relpath(change.path, project): change.change_type for change in changes}
    assert kinds["README"] == "modified" and kinds["src/main.py"] == "deleted"
    assert kinds["deep/er/file"] == "created" and kinds["run.sh"] == "permissions_changed"
    assert [change.path for change in session.changes()] == [change.path for change in changes]
    assert b"+more" in session.diff() and b"+more" not in session.diff([project / "src"])

    planned = session.restore(dry_run=True)
    assert planned.dry_run and tree(project) == after
    restored = session.restore()
    assert restored.ok and restored.undo_id and tree(project) == before
    assert session.undo().ok and tree(project) == after
    # Only a part of it.
    assert session.restore([project / "README"]).ok
    assert (project / "README").read_text() == "hello\n" and not (project / "empty").exists()
    # Nothing chosen is not everything.
    assert session.restore([]).changes == [] and not (project / "empty").exists()


def test_sessions_and_checkpoints_have_the_same_classes(project: Path, tmp_path: Path) -> None:
    session = nono.Session([SH, "-c", f"echo a >> {project}/README"], allow=[project], rollback=True)
    report = session.run()
    manager = nono.CheckpointManager(tmp_path / "state", tmp_path)
    manager.create(project)
    (project / "new").write_text("new\n")
    changes, diff = session.changes(), manager.diff(project, 1)
    assert type(changes) is type(diff) and type(changes[0]) is type(diff[0]) is nono.HistoryChange
    assert changes.checkpoint is None and diff.checkpoint is not None and "+new" in diff.patch
    with pytest.raises(AttributeError, match="diff"):
        changes.patch
    of_session, of_project = session.restore(dry_run=True), manager.plan(project, 1)
    assert type(of_session) is type(of_project) is nono.RestoreResult and of_session.dry_run and of_project.dry_run
    assert (of_session.session, of_session.project) == (report.session_id, None)
    assert (of_project.session, of_project.project) == (None, str(project))
    assert [one.change_type for one in of_session.changes] == ["modified"] and of_session.changes[0].patch is None
    checked = [session.rollback.verify(), nono.verify_sessions(), manager.verify()]
    assert {type(one) for one in checked} == {nono.VerifyReport} and all(one.good for one in checked)
    pruned = [nono.cleanup_sessions(keep=9, dry_run=True), manager.prune(dry_run=True)]
    assert {type(one) for one in pruned} == {nono.PruneReport} and all(one.dry_run for one in pruned)
    # Nothing chosen, as a plan.
    assert session.restore([], dry_run=True).dry_run


def test_what_others_changed_later_is_kept(project: Path) -> None:
    session = nono.Session([SH, "-c", f"echo a >> {project}/README"], allow=[project], rollback=True)
    session.run()
    (project / "README").write_text("mine\n")
    kept = session.restore()
    assert not kept.ok and [path for path, _ in kept.kept] == [str(project / "README")]
    assert (project / "README").read_text() == "mine\n"
    assert session.restore(conflicts="force").ok and (project / "README").read_text() == "hello\n"
    with pytest.raises(ValueError, match="conflicts"):
        session.restore(conflicts="perhaps")  # type: ignore[arg-type]


def test_an_exception_after_the_run_puts_everything_back(project: Path) -> None:
    before = tree(project)
    with pytest.raises(KeyError):
        with nono.Session([SH, "-c", CHANGES.format(project=project)], allow=[project], rollback=True) as session:
            session.run()
            assert tree(project) != before
            raise KeyError
    assert tree(project) == before


def test_limits() -> None:
    report = nono.run(["sleep", "60"], max_time=0.2, capture_output=True)
    assert (report.exit_code, report.limit) == (124, "time")
    report = sh("head -c 100000 /dev/zero > $TMPDIR/big", max_file_size=1000)
    assert report.exit_code != 0


Answer = Callable[[nono.ApprovalRequest], Any]


def asked(secret: Path, project: Path, answer: Answer, **options: Any) -> tuple[nono.SessionReport, list[nono.ApprovalRequest]]:
    requests: list[nono.ApprovalRequest] = []

    def approve(request: nono.ApprovalRequest) -> Any:
        requests.append(request)
        return answer(request)

    return nono.run(["cat", secret], allow=[project], capture_output=True, approve=approve, **options), requests


def test_a_yes_opens_what_was_shown(project: Path, secret: Path) -> None:
    report, requests = asked(secret, project, lambda request: request.path == str(secret))
    assert report.stdout == b"hidden words\n" and report.ok and report.asked >= 1
    [request] = [request for request in requests if request.path == str(secret)]
    assert (request.kind, request.access, request.object) == ("access", "read", "file")
    assert Path(request.program).name == "cat" and request.pid > 0
    assert request.to_dict()["path"] == str(secret) and str(secret) in repr(request)
    assert [grant["path"] for grant in report.expansions] == [str(secret)]


@pytest.mark.parametrize("answer", ["session", "always", "directory"])
def test_an_answer_for_longer_is_asked_once(project: Path, secret: Path, answer: str) -> None:
    count = 0

    def approve(request: nono.ApprovalRequest) -> Any:
        nonlocal count
        count += request.path == str(secret)
        return answer if request.path == str(secret) else False

    report = sh(f"cat {secret}; cat {secret}", allow=[project], approve=approve)
    assert report.stdout == b"hidden words\n" * 2 and count == 1


@pytest.mark.parametrize("answer", [False, "deny", "never"])
def test_a_no_is_a_no(project: Path, secret: Path, answer: object) -> None:
    report, requests = asked(secret, project, lambda request: answer)
    assert report.stdout == b"" and not report.ok and requests and not report.approval_errors


@pytest.mark.filterwarnings("ignore:approve failed")
@pytest.mark.parametrize("answer", [None, 1, "yes", object()])
def test_an_answer_that_means_nothing_is_a_no(project: Path, secret: Path, answer: object) -> None:
    report, _ = asked(secret, project, lambda request: answer)
    assert report.stdout == b"" and not report.ok
    assert isinstance(report.approval_errors[0], (TypeError, ValueError))


def test_an_exception_is_a_no_and_is_not_lost(project: Path, secret: Path) -> None:
    def explode(request: nono.ApprovalRequest) -> bool:
        raise ZeroDivisionError("in approve")

    with pytest.warns(RuntimeWarning, match="in approve"):
        report, _ = asked(secret, project, explode)
    assert report.stdout == b"" and not report.ok
    assert isinstance(report.approval_errors[0], ZeroDivisionError)
    assert report.approval_errors[0].__traceback__ is not None


def test_no_answer_in_time_is_a_no(project: Path, secret: Path) -> None:
    release = threading.Event()

    def slow(request: nono.ApprovalRequest) -> bool:
        release.wait(60)
        return True

    try:
        report, requests = asked(secret, project, slow, approve_timeout=0.2)
        assert report.stdout == b"" and not report.ok and requests
    finally:
        release.set()


def test_a_command_that_ended_is_not_waited_for(project: Path, secret: Path) -> None:
    release = threading.Event()
    try:
        report, requests = asked(secret, project, lambda request: release.wait(60), max_time=1)
        assert (report.limit, report.stdout) == ("time", b"") and requests
    finally:
        release.set()


def test_approve_must_be_callable(secret: Path) -> None:
    with pytest.raises(TypeError, match="approve"):
        nono.run(["cat", secret], approve="yes")  # type: ignore[arg-type]


def test_a_file_of_rules_answers_first(project: Path, secret: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"path": str(secret), "action": "allow", "access": "read"}]}))
    rules.chmod(0o600)
    report, requests = asked(secret, project, lambda request: False, approve_rules=[rules])
    assert report.stdout == b"hidden words\n"
    assert str(secret) not in [request.path for request in requests]


def test_errors_are_pythons_where_python_has_one(project: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        nono.run(["no-such-program"])
    assert getattr(missing.value, "kind", None) == "program_not_found"
    with pytest.raises(PermissionError):
        nono.run([project / "README"])
    with pytest.raises(ValueError, match="empty"):
        nono.run([])
    with pytest.raises(FileNotFoundError) as missing:
        nono.run(["true"], allow=[tmp_path / "nowhere"])
    assert missing.value.filename == str(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        nono.run(["true"], workdir=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="file"):
        nono.run(["true"], allow=[project / "README"])
    for options in (
        {"name": "last"},
        {"max_time": -1.0},
        {"max_time": float("nan")},
        {"allow_net": True, "block_net": True},
        {"allow_net": True, "allow_domain": ["example.org"]},
        {"allow_domain": ["a b"]},
        {"max_procs": 0},
        {"rollback_all": True},
        {"audit": False, "audit_integrity": True},
        {"env": {"LD_PRELOAD": "x"}},
        {"profile": "no-such-profile"},
    ):
        with pytest.raises(ValueError):
            nono.run(["true"], **options)
    with pytest.raises(nono.PolicyError) as own:
        nono.run(["true"], allow=[os.environ["NONO_HOME"]])
    assert own.value.kind in ("nono_owned", "not_found")


def test_arguments_of_a_wrong_type(project: Path) -> None:
    with pytest.raises(TypeError, match="alow"):
        nono.run(["true"], alow=[project])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="alow"):
        nono.Session(["true"], alow=[project])  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        nono.run(["true"], allow=str(project))
    with pytest.raises(TypeError):
        nono.run("true")
    with pytest.raises(RuntimeError, match="has not run"):
        nono.Session(["true"]).report


def test_the_arguments_of_the_command_are_left_alone() -> None:
    assert nono.run(["echo", "~", "~root", ""], capture_output=True).stdout == b"~ ~root \n"


def test_the_resolved_policy_without_a_run(project: Path, state: Path) -> None:
    policy = nono.resolve(["true"], allow=[project], allow_domain=["example.org"])
    grants = {grant["resolved"]: grant["access"] for grant in policy["grants"]}
    assert str(project) in grants
    json.dumps(policy)
    assert not (state / "rollbacks").exists() and not (state / "audit").exists()


def test_values_are_plain(project: Path) -> None:
    session = nono.Session([SH, "-c", f"echo '<b>' > '{project}/<i>'"], allow=[project], rollback=True, name="plain")
    report = session.run()
    described = report.to_dict()
    json.dumps({name: value for name, value in described.items() if name not in ("stdout", "stderr")})
    assert described["session_id"] == report.session_id and described["exit_code"] == 0
    assert described["changes"]["counts"]["created"] == 1
    changes = report.changes
    assert changes is not None and len(changes) == 1 and changes[0].path == changes[-1].path
    with pytest.raises(IndexError):
        changes[1]
    for html in (changes._repr_html_(), report._repr_html_(), session.restore(dry_run=True)._repr_html_()):
        assert "&lt;i&gt;" in html and "<i>" not in html
    assert report.session_id in repr(report) and "exit_code=0" in repr(report)
    past = nono.open_session("plain")
    assert past.to_dict()["session_id"] == report.session_id and past.name == "plain"
    assert report.coverage is not None and report.coverage["files"] > 0
    kind: Any = nono.SessionReport
    with pytest.raises(TypeError):
        type("Sub", (kind,), {})
    with pytest.raises(TypeError):
        kind()


def test_names_of_any_bytes(project: Path) -> None:
    odd = project / os.fsdecode(b"odd\xff")
    session = nono.Session(["touch", odd], allow=[project], deny=[], rollback=True)
    report = session.run()
    changes = report.changes
    assert changes is not None and changes[0].path == str(odd) == changes[0].to_dict()["path"]
    assert [one.path for one in session.restore().changes] == [str(odd)] and not odd.exists()
    odd.mkdir()
    policy = nono.resolve(["true"], allow=[odd])
    assert str(odd) in [grant["resolved"] for grant in policy["grants"]]


def test_undo_points(project: Path) -> None:
    assert nono.undo_points(project) == []
    first = nono.run(["touch", project / "one"], allow=[project], rollback=True)
    second = nono.run(["touch", project / "two"], allow=[project], rollback=True)
    both = [second.session_id, first.session_id]
    points = nono.undo_points(project)
    assert [point["id"] for point in points] == both
    assert all(point["kind"] == "session" and point["changes"]["created"] == 1 for point in points)
    for to in (first.session_id, "1h"):
        assert [point["id"] for point in nono.undo_points(project, to=to)] == both
    assert [point["id"] for point in nono.undo_points(project, paths=[project / "one"])] == both[1:]
    nono.open_session(second.session_id).restore()
    assert [point["id"] for point in nono.undo_points(project)] == both[1:]
    with pytest.raises(ValueError, match="not a session, a checkpoint here, or a time"):
        nono.undo_points(project, to="yesterday")
    with pytest.raises(FileNotFoundError):
        nono.undo_points(project / "nowhere")


def test_past_sessions(project: Path) -> None:
    assert nono.list_sessions() == []
    with pytest.raises(nono.SessionError) as none:
        nono.open_session()
    assert none.value.kind == "no_such_session"
    first = nono.run(["touch", project / "one"], allow=[project], rollback=True, name="first")
    second = nono.run(["touch", project / "two"], allow=[project], rollback=True)
    assert [session.session_id for session in nono.list_sessions()] == [second.session_id, first.session_id]
    assert nono.list_sessions(path="/nowhere") == []
    for text in (first.session_id, "first"):
        assert nono.open_session(text).session_id == first.session_id
    past = nono.open_session("last")
    assert past.session_id == second.session_id
    assert nono.open_session(past.dir).session_id == second.session_id
    assert (past.status, past.exit_code, past.tracked_paths) == ("finished", 0, [str(project)])
    checked = past.verify()
    all_checked = nono.verify_sessions()
    assert all_checked.good and checked.to_dict() in all_checked.to_dict()["sessions"] and all_checked.running == []
    assert checked.good and not checked.problems and not checked.lost and checked.session == second.session_id
    assert checked.sealed and checked.snapshots and all_checked.objects >= checked.objects > 0
    assert [one.session for one in all_checked.sessions] == [second.session_id, first.session_id]
    assert [one["id"] for one in past.snapshots()][0] == 0
    assert past.coverage()["files"] > 0
    past.pin()
    assert nono.open_session("last").pinned
    with pytest.raises(ValueError):
        past.changes(from_snapshot=99)
    with pytest.raises(nono.SessionError) as nothing:
        past.undo()
    assert nothing.value.kind == "nothing_to_undo"
    with pytest.raises(ValueError):
        nono.cleanup_sessions()
    removed = nono.cleanup_sessions(remove_all=True)
    assert [one["session_id"] for one in removed.sessions] == [first.session_id]
    assert not removed.removed and not removed.problems and removed.to_dict()["removed"] == removed.sessions
    with pytest.raises(nono.SessionError):
        nono.open_session(first.session_id).changes()


def test_the_audit_log_is_sealed(project: Path) -> None:
    report = nono.run(["true"], allow=[project], rollback=True)
    assert report.audit_dir is not None and report.audit is not None
    assert report.audit["sealed"] and report.audit["exit_code"] == 0
    lines = (Path(report.audit_dir) / "events.ndjson").read_text().splitlines()
    assert len(lines) == report.audit["audit_event_count"] and all(json.loads(line) for line in lines)
    assert nono.run(["true"], audit=False).audit_dir is None


def test_sessions_in_threads_do_not_meet(tmp_path: Path) -> None:
    reports: dict[int, nono.SessionReport] = {}

    def work(number: int) -> None:
        root = tmp_path / f"root{number}"
        root.mkdir()
        reports[number] = sh(f"echo {number} > {root}/file; echo {number}", allow=[root], rollback=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({report.session_id for report in reports.values()}) == 6
    for number, report in reports.items():
        assert report.stdout == f"{number}\n".encode()
        changes = report.changes
        assert changes is not None and [change.path for change in changes] == [str(tmp_path / f"root{number}" / "file")]


def test_other_threads_go_on() -> None:
    count = 0
    over = threading.Event()

    def counting() -> None:
        nonlocal count
        while not over.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=counting)
    thread.start()
    before = count
    nono.run(["sleep", "0.5"], capture_output=True)
    during = count - before
    over.set()
    thread.join()
    assert during > 20


def running_named(name: str) -> nono.RunningSession:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for session in nono.running_sessions():
            if session.name == name:
                return session
        time.sleep(0.02)
    raise AssertionError("it never ran")


def test_a_running_session_can_be_stopped(project: Path) -> None:
    reports: list[nono.SessionReport] = []

    def work() -> None:
        reports.append(nono.run(["sleep", "600"], allow=[project], name="sleeper", capture_output=True))

    thread = threading.Thread(target=work)
    thread.start()
    running = running_named("sleeper")
    assert running.pid == os.getpid() and running.command == ["sleep", "600"]
    assert running.to_dict()["id"] == running.session_id
    assert running.inspect()["id"] == running.session_id
    assert nono.stop_session("sleeper").session_id == running.session_id
    thread.join(60)
    assert reports[0].stopped and reports[0].signal == signal.SIGTERM
    assert nono.running_sessions() == []
    with pytest.raises(nono.SessionError):
        nono.stop_session("sleeper")


def test_cancel_asks_first_and_takes_the_last_snapshot(project: Path) -> None:
    cancel = nono.Cancel()
    started = project / "started"
    script = f"trap 'echo bye > {project}/last; exit 7' TERM; touch {started}; while :; do sleep 0.05; done"
    reports: list[nono.SessionReport] = []

    def work() -> None:
        reports.append(sh(script, allow=[project], rollback=True, cancel=cancel))

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    cancel.cancel()
    thread.join(60)
    [report] = reports
    assert report.cancelled and report.exit_code == 7
    changes = report.changes
    assert changes is not None and {Path(change.path).name for change in changes} == {"started", "last"}


def test_cancelled_before_it_started(project: Path, state: Path) -> None:
    cancel = nono.Cancel()
    cancel.cancel()
    try:
        report = nono.run(["sleep", "600"], allow=[project], capture_output=True, cancel=cancel)
    except nono.Cancelled:
        return
    assert report.cancelled


def test_progress_is_told(project: Path) -> None:
    for number in range(50):
        (project / f"file{number}").write_text("x")
    told: list[tuple[int, int]] = []
    nono.run(["true"], allow=[project], rollback=True, progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] >= 50
    with pytest.raises(TypeError):
        nono.run(["true"], progress=3)  # type: ignore[arg-type]


INTERRUPTED = """
import os, signal, sys, threading, time
import nono_py as nono
project, marker = sys.argv[1:]
def interrupt():
    while not os.path.exists(marker):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
session = nono.Session(["/bin/sh", "-c", f"touch {marker}; exec sleep 600"], allow=[project], rollback=True,
                       capture_output=True)
try:
    session.run()
except KeyboardInterrupt as error:
    report = error.report
    assert report is session.report
    assert report.cancelled and report.signal == signal.SIGTERM, report
    assert [os.path.basename(change.path) for change in report.changes] == ["marker"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print("interrupted")
"""


def test_ctrl_c_ends_the_command(project: Path) -> None:
    marker = project / "marker"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, project, marker], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)
    left = subprocess.run(["pgrep", "-f", "sleep 600"], capture_output=True, text=True).stdout
    assert str(marker) not in left


def mask() -> set[int]:
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, []))


def held() -> dict[str, object]:
    tasks = os.listdir("/proc/self/task")
    children = [Path(f"/proc/self/task/{task}/children").read_text() for task in tasks]
    base = Path(os.environ.get("TMPDIR", "/tmp")) / f"nono-{os.getuid()}"
    prefix = f"{os.getpid():x}."
    folders = [name for name in os.listdir(base) if name.startswith(prefix)] if base.exists() else []
    status = Path("/proc/self/status").read_text()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(tasks),
        "children": "".join(children),
        "folders": folders,
        "mask": mask(),
        "signals": [line for line in status.splitlines() if line.startswith(("SigIgn", "SigCgt", "CoreDumping"))],
        "handler": signal.getsignal(signal.SIGINT),
    }


def test_nothing_is_left_behind(project: Path) -> None:
    def cycle(number: int) -> None:
        assert sh("echo x", allow=[project], rollback=number % 10 == 0, approve=lambda request: False).ok
        with pytest.raises(FileNotFoundError):
            nono.run(["no-such-program"])

    for number in range(3):
        cycle(number)
    # What other tests let go of is gone by now, not at some moment in between.
    gc.collect()
    before = held()
    for number in range(100):
        cycle(number)
    gc.collect()
    assert held() == before


def test_the_host_may_still_look_into_itself(project: Path) -> None:
    assert sh("true", allow=[project]).ok
    # Undumpable, it could not.
    assert Path("/proc/self/environ").read_bytes()


@pytest.fixture()
def cli() -> Iterator[Callable[..., str]]:
    binary = os.environ.get("NONO_BIN")
    if not binary:
        pytest.skip("NONO_BIN does not say where the command is")

    def call(*arguments: str) -> str:
        return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout

    yield call


def test_the_command_line_sees_it(project: Path, cli: Callable[..., str]) -> None:
    report = nono.run(["touch", project / "one"], allow=[project], rollback=True)
    [entry] = json.loads(cli("rollback", "list", "--json"))
    assert entry["session_id"] == report.session_id and entry == nono.open_session().to_dict()
    assert json.loads(cli("rollback", "verify", "--json"))["good"]
    cli("audit", "verify", report.session_id)
    cli("rollback", "restore", "last", "--yes")
    assert not (project / "one").exists()
    assert nono.open_session().undo().ok and (project / "one").exists()
