# needs: python3 / python3
set -e
cat > all.py <<'P'
import ctypes, fcntl, hashlib, json, mmap, multiprocessing as mp, os, pty, resource, select, shutil, signal
import socket, sqlite3, subprocess, sys, tempfile, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def square(n): return n * n
def main():
    with mp.Pool(3) as pool: print("pool", pool.map(square, range(5)))
    for how in mp.get_all_start_methods():
        with ProcessPoolExecutor(2, mp_context=mp.get_context(how)) as pool: print(how, sum(pool.map(square, range(4))))
    with ThreadPoolExecutor(4) as pool: print("threads", sum(pool.map(square, range(4))))
    queue = mp.Queue(); queue.put("through a queue"); print(queue.get())
    shared = mp.Value("i", 40); shared.value += 2; print("shared", shared.value)
    lock = mp.Lock(); lock.acquire(); lock.release()
    with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile() as f, tempfile.TemporaryFile() as g:
        f.write(b"x"); f.flush(); shutil.copy(f.name, d); print("temporary", len(os.listdir(d)))
    db = sqlite3.connect("base.db"); db.execute("pragma journal_mode=wal"); db.execute("create table t(x)")
    db.executemany("insert into t values(?)", [(i,) for i in range(100)]); db.commit()
    print("sqlite", db.execute("select sum(x) from t").fetchone()); db.close()
    print("subprocess", subprocess.run(["sh", "-c", "echo out; exit 3"], capture_output=True))
    with open("lock", "w") as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
    with open("map", "w+b") as f:
        f.truncate(4096)
        with mmap.mmap(f.fileno(), 4096) as m: m[:5] = b"hello"; print("mmap", m[:5])
    a, b = socket.socketpair(); a.send(b"pair"); print("socketpair", b.recv(9))
    s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect("sock")
    t, _ = s.accept(); t.send(b"unix"); print("socket", c.recv(9))
    m, w = pty.openpty(); os.write(w, b"pty\n"); print("pty", os.read(m, 9), os.ttyname(w).startswith("/dev/pts/"))
    pid, fd = pty.fork()
    if pid == 0: os.execvp("tty", ["tty"])
    print("pty.fork", os.read(fd, 99).startswith(b"/dev/pts/")); os.waitpid(pid, 0)
    signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
    print("memfd", os.write(os.memfd_create("x"), b"abc"), "pidfd", os.pidfd_open(os.getpid()) > 2)
    e = select.epoll(); e.register(b.fileno()); print("epoll", len(e.poll(0.1)))
    print("urandom", len(os.urandom(8)), "limits", resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0)
    x = os.open(".", os.O_RDONLY); os.mkfifo("fifo"); print("dirfd", os.stat("fifo", dir_fd=x).st_size); os.setxattr("map", "user.a", b"1")
    print("xattr", os.getxattr("map", "user.a"), "libc", ctypes.CDLL(None).getpid() == os.getpid())
    print("cpus", os.cpu_count() > 0, len(os.sched_getaffinity(0)) > 0, os.getloadavg()[0] >= 0)
if __name__ == "__main__": main()
P
python3 all.py
