"""``sandboxed_exec`` inside a process that has a life of its own: threads, signals, forks, nothing left behind."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from exec_kit import left_folders, marker, running, sh, system
from nono_py import sandboxed_exec

TESTS = str(Path(__file__).parent)


def in_a_process(code: str, *arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a program of its own beside these tests."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": TESTS}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout)


def status(thread: bool = False) -> dict[str, str]:
    path = "/proc/thread-self/status" if thread else "/proc/self/status"
    lines = Path(path).read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def dumpable() -> int:
    import ctypes

    return int(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))


def test_sixty_four_threads_at_once() -> None:
    caps = system()
    gate = threading.Barrier(64)

    def many(worker: int) -> list[bytes]:
        gate.wait()
        return [sh(caps, f"echo {worker} {turn}").stdout for turn in range(5)]

    with ThreadPoolExecutor(64) as pool:
        said = list(pool.map(many, range(64)))
    assert said == [[f"{worker} {turn}\n".encode() for turn in range(5)] for worker in range(64)]
    assert left_folders() == []


def test_beside_threads_that_fork_and_allocate() -> None:
    # Locks of the C library and of Python are taken and let go all the time while processes are made.
    caps = system()
    stop = threading.Event()
    failures: list[BaseException] = []

    def busy(work: Callable[[], object]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            failures.append(error)

    def churn() -> None:
        [bytearray(size) for size in range(100, 60000, 1000)]
        os.environ["NONO_TEST_CHURN"] = str(time.time())
        gc.collect(0)

    def popen() -> None:
        subprocess.run(["true"], check=True)

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    threads = [threading.Thread(target=busy, args=(work,)) for work in (churn, churn, popen, fork)]
    for thread in threads:
        thread.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda turn: sh(caps, f"cat; echo {turn}", stdin=b"in "), range(80)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert [result.stdout for result in results] == [f"in {turn}\n".encode() for turn in range(80)]


def test_input_ends_although_others_are_started_meanwhile() -> None:
    # If the writing end of a pipe leaked into another child, `cat` would wait for that child.
    caps = system()
    with ThreadPoolExecutor(16) as pool:
        long_ones = [pool.submit(sh, caps, "sleep 5", timeout_secs=60) for _ in range(4)]
        popens = [subprocess.Popen(["sleep", "5"], close_fds=False) for _ in range(4)]
        began = time.monotonic()
        results = list(pool.map(lambda turn: sh(caps, "cat", stdin=b"x" * turn), range(40)))
        assert [len(result.stdout) for result in results] == list(range(40))
        assert not all(one.done() for one in long_ones) or time.monotonic() - began > 5
        for popen in popens:
            popen.kill()
            popen.wait()


def test_the_interpreter_is_released() -> None:
    caps = system()
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        sh(caps, "sleep 0.5")
        assert counted[0] - before > 1000
    finally:
        stop.set()
        thread.join()


def test_the_process_stays_as_it_was() -> None:
    caps = system()
    seen: list[tuple[int, tuple[int, int]]] = []

    def state() -> tuple[object, ...]:
        own = status(thread=True)
        return (
            own["SigBlk"],
            own["SigIgn"],
            own["SigCgt"],
            status()["NoNewPrivs"],
            status()["Seccomp"],
            dumpable(),
            resource.getrlimit(resource.RLIMIT_CORE),
            resource.getrlimit(resource.RLIMIT_NPROC),
            signal.getsignal(signal.SIGINT),
            os.getcwd(),
            os.getpgrp(),
            os.umask(os.umask(0o22)),
        )

    before = state()
    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(sh, caps, "sleep 0.2") for _ in range(16)]
        while not all(one.done() for one in done):
            seen.append((dumpable(), resource.getrlimit(resource.RLIMIT_CORE)))
            time.sleep(0.01)
        assert all(one.result().exit_code == 0 for one in done)
    assert state() == before
    assert set(seen) == {(before[5], before[6])}


def test_nothing_is_left_after_many() -> None:
    caps = system()

    def once(turn: int) -> None:
        if turn % 10 == 0:
            assert sh(caps, "sleep 60 & sleep 60", timeout_secs=0.05).exit_code == 124
        elif turn % 10 == 1:
            assert sandboxed_exec(caps, ["/etc/passwd"]).exit_code == 127
        else:
            assert sh(caps, "cat", stdin=b"x" * 1000).stdout == b"x" * 1000

    def threads() -> int:
        """How many stay: one that has done its work may need a moment to leave."""
        until, fewest = time.monotonic() + 0.5, len(os.listdir("/proc/self/task"))
        while time.monotonic() < until:
            fewest = min(fewest, len(os.listdir("/proc/self/task")))
            time.sleep(0.01)
        return fewest

    def counts() -> tuple[int, int, list[str], list[int]]:
        staying = threads()
        children = Path("/proc/self/task").iterdir()
        zombies = [int(pid) for task in children for pid in (task / "children").read_text().split()]
        return len(os.listdir("/proc/self/fd")), staying, left_folders(), zombies

    def memory() -> int:
        gc.collect()
        return int(status()["VmRSS"].split()[0])

    for turn in range(60):
        once(turn)
    before, used = counts(), memory()
    for turn in range(300):
        once(turn)
    assert counts() == before
    assert before[2] == []
    assert memory() - used < 8 * 1024, "KiB"


def test_ctrl_c_ends_the_call_and_the_tree() -> None:
    nap = marker()
    code = """
        import os, signal, sys, threading
        from exec_kit import sh, system, running
        nap = sys.argv[1]
        def interrupt():
            while not running(nap):
                pass
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            sh(system(), f"trap '' INT; (setsid sleep {nap} &); sleep {nap}")
        except KeyboardInterrupt:
            print("interrupted", running(nap), sh(system(), "echo again").stdout)
    """
    done = in_a_process(code, nap)
    assert done.stdout == "interrupted [] b'again\\n'\n", done.stderr
    assert running(nap) == []


def test_signals_reach_python_while_commands_run() -> None:
    code = """
        import os, signal, threading, time
        from exec_kit import sh, system
        heard = []
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
        caps = system()
        stop = threading.Event()
        def storm():
            while not stop.is_set():
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.001)
        thread = threading.Thread(target=storm)
        thread.start()
        said = [sh(caps, f"cat; echo {turn}", stdin=b"x" * 100000).stdout[-3:] for turn in range(20)]
        stop.set()
        thread.join()
        assert said == [f"x{turn}\\n".encode()[-3:] for turn in range(20)], said
        print("heard" if heard else "deaf")
    """
    done = in_a_process(code)
    assert done.stdout == "heard\n", done.stderr


def test_a_killed_host_takes_the_tree_with_it() -> None:
    nap = marker()
    code = """
        import os, signal, sys, threading
        from exec_kit import sh, system, running
        nap = sys.argv[1]
        def end():
            while not running(nap):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Thread(target=end).start()
        sh(system(), f"(setsid sleep {nap} &); sleep {nap}")
    """
    assert in_a_process(code, nap).returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while running(nap) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running(nap) == []


def test_a_broken_pipe_kills_no_process() -> None:
    code = """
        import signal
        from exec_kit import sh, system
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        print(sh(system(), "exec <&-; sleep 0.3; exit 3", stdin=b"x" * (1 << 22)).exit_code)
    """
    done = in_a_process(code)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_a_host_that_waits_for_all_children() -> None:
    # Who reaps whatever it finds, or lets the kernel do it, must not reap what it did not start.
    code = """
        import os, signal, threading
        from exec_kit import sh, system
        caps = system()
        found, stop = [], threading.Event()
        def reap():
            while not stop.is_set():
                try: found.append(os.waitpid(-1, os.WNOHANG))
                except ChildProcessError: pass
        reaper = threading.Thread(target=reap)
        reaper.start()
        codes = [sh(caps, "exit 3").exit_code for _ in range(20)]
        stop.set()
        reaper.join()
        heard = []
        signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
        codes += [sh(caps, "exit 3").exit_code for _ in range(5)]
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        codes += [sh(caps, "sh -c 'exit 3'; exit $?").exit_code for _ in range(5)]
        print(set(codes), [one for one in found if one[0]], heard)
    """
    done = in_a_process(code)
    assert done.stdout == "{3} [] []\n", done.stderr


@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1, 2)])
def test_a_host_without_standard_streams(closed: tuple[int, ...], tmp_path: Path) -> None:
    code = """
        import os, sys
        from exec_kit import sh, system
        for descriptor in map(int, sys.argv[2:]):
            os.close(descriptor)
        result = sh(system(), "cat; echo out; echo err >&2; exit 4", stdin=b"in ")
        bad = sh(system(), "true", cwd="/usr/bin/env")
        with open(sys.argv[1], "w") as file:
            print(result.stdout, result.stderr, result.exit_code, bad.exit_code, bad.stdout, file=file)
    """
    said = tmp_path / "said"
    done = in_a_process(code, said, *closed)
    assert said.read_text() == "b'in out\\n' b'err\\n' 4 126 b''\n", done.stderr


def test_after_a_fork_of_the_host() -> None:
    # multiprocessing's way: a copy of a process that had threads in the middle of calls.
    code = """
        import os, sys, threading
        from exec_kit import sh, system
        caps = system()
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                sh(caps, "true")
        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads: thread.start()
        codes = []
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                os._exit(sh(caps, "exit 9").exit_code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stop.set()
        for thread in threads: thread.join()
        print(codes)
    """
    done = in_a_process(code)
    assert done.stdout == f"{[9] * 10}\n", done.stderr


def test_after_a_fork_in_the_middle_of_a_first_call() -> None:
    # Whatever the first call of a thread imports, a process that is forked meanwhile does not wait for it.
    code = """
        import builtins, os, signal, threading
        from exec_kit import sh, system
        caps = system()
        importing, forked = threading.Event(), threading.Event()
        real = builtins.__import__
        def slow_import(*arguments, **rest):
            if threading.current_thread() is worker:
                importing.set()
                forked.wait()
                forked.clear()
            return real(*arguments, **rest)
        def work():
            sh(caps, "true")
            done.append(True)
            importing.set()
        done, codes = [], []
        worker = threading.Thread(target=work)
        builtins.__import__ = slow_import
        worker.start()
        while True:
            importing.wait()
            importing.clear()
            if done:
                break
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                os._exit(sh(caps, "exit 9").exit_code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            forked.set()
        print(len(codes) > 0, set(codes))
    """
    done = in_a_process(code)
    assert done.stdout == "True {9}\n", done.stderr


def test_under_gevent() -> None:
    code = """
        from gevent import monkey
        monkey.patch_all()
        import gevent, threading
        from exec_kit import sh, system
        caps = system()
        ticks = []
        def one(turn):
            return sh(caps, f"cat; echo {turn}", stdin=b"x" * 200000).stdout[-3:]
        jobs = [gevent.spawn(one, turn) for turn in range(10)]
        gevent.joinall(jobs, raise_error=True)
        assert [job.value for job in jobs] == [f"x{turn}\\n".encode() for turn in range(10)]
        pooled = gevent.get_hub().threadpool.map(one, range(10))
        assert list(pooled) == [f"x{turn}\\n".encode() for turn in range(10)]
        said = []
        thread = threading.Thread(target=lambda: said.append(one(5)))
        thread.start()
        thread.join()
        print(said)
    """
    done = in_a_process(code)
    assert done.stdout == "[b'x5\\n']\n", done.stderr


def test_a_terminal_as_input_can_be_read(tmp_path: Path) -> None:
    # In the background of a terminal a reader would be stopped; a command has left it.
    code = """
        import sys
        from exec_kit import sh, system
        result = sh(system(), "head -n 1", timeout_secs=60)
        with open(sys.argv[1], "wb") as file:
            file.write(result.stdout)
    """
    import pty

    said = tmp_path / "said"
    pid, master = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = TESTS
        os.execv(sys.executable, [sys.executable, "-c", textwrap.dedent(code), str(said)])
    os.write(master, b"typed\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(master)
    assert said.read_bytes() == b"typed\n"
