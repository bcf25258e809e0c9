/* Acting on another process of the same user: signals, limits, priorities, tracing, memory, descriptors. */
#include "attack.h"
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int queue(int number, pid_t pid) {
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE, .si_pid = getpid(), .si_uid = getuid()};
    if (number == SYS_rt_tgsigqueueinfo) return syscall(number, pid, pid, SIGUSR1, &info);
    return syscall(number, pid, SIGUSR1, &info);
}
static int by_pidfd(pid_t pid, int is_proc_dir) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    int fd = must(is_proc_dir ? open(path, O_RDONLY | O_DIRECTORY) : syscall(SYS_pidfd_open, pid, 0), "pidfd");
    return syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0);
}
/* The kernel sends the signal on our behalf when the socket becomes readable. */
_Noreturn static void by_owner(pid_t pid, int type) {
    struct f_owner_ex owner = {.type = type, .pid = pid};
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    must(fcntl(pair[0], F_SETSIG, SIGUSR1), "F_SETSIG");
    must(fcntl(pair[0], F_SETOWN_EX, &owner), "F_SETOWN_EX");
    must(fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK), "O_ASYNC");
    must(write(pair[1], "x", 1), "write");
    tried("signal through the owner of a socket");
}
/* A stop takes effect a moment later; an observer afterwards must see it. */
static void await_stop(pid_t pid) {
    char path[64], text[256] = "", *end;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    do {
        int fd = open(path, O_RDONLY);
        long got = read(fd, text, sizeof text - 1);
        text[got > 0 ? got : 0] = 0;
        close(fd);
        end = strrchr(text, ')');
    } while (end && end[2] != 'T' && sched_yield() == 0);
}
static void send_signal(char **a) {
    const char *how = a[0];
    pid_t pid = target(a[1]);
    if (!strcmp(how, "owner")) by_owner(pid, F_OWNER_PID);
    if (!strcmp(how, "owner-tid")) by_owner(pid, F_OWNER_TID);
    if (!strcmp(how, "owner-group")) by_owner(pid, F_OWNER_PGRP);
    int sent = !strcmp(how, "kill")       ? kill(pid, SIGUSR1)
               : !strcmp(how, "stop")     ? kill(pid, SIGSTOP)
               : !strcmp(how, "group")    ? kill(-pid, SIGUSR1)
               : !strcmp(how, "tkill")    ? syscall(SYS_tkill, pid, SIGUSR1)
               : !strcmp(how, "tgkill")   ? syscall(SYS_tgkill, pid, pid, SIGUSR1)
               : !strcmp(how, "queue")    ? queue(SYS_rt_sigqueueinfo, pid)
               : !strcmp(how, "tgqueue")  ? queue(SYS_rt_tgsigqueueinfo, pid)
               : !strcmp(how, "pidfd")    ? by_pidfd(pid, 0)
               : !strcmp(how, "proc-dir") ? by_pidfd(pid, 1)
                                          : (errno = EINVAL, -1);
    must(sent, how);
    if (!strcmp(how, "stop")) await_stop(pid);
    escaped("signalled %d by %s", pid, how);
}
static void signal_all(char **a) {
    (void)a;
    must(kill(-1, SIGUSR1), "kill(-1)");
    tried("signalled every process");
}
/* Ignores the signal itself, so that only others in the same process group can be hurt. */
static void signal_group(char **a) {
    (void)a;
    signal(SIGUSR1, SIG_IGN);
    must(kill(0, SIGUSR1), "kill(0)");
    tried("signalled the own process group");
}

static void limit(char **a) {
    static const struct {
        const char *name;
        int resource;
    } known[] = {{"cpu", RLIMIT_CPU}, {"fsize", RLIMIT_FSIZE}, {"nofile", RLIMIT_NOFILE}, {"as", RLIMIT_AS}};
    pid_t pid = target(a[1]);
    struct rlimit64 limits;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, a[0])) continue;
        must(prlimit64(pid, known[i].resource, NULL, &limits), "prlimit read");
        limits.rlim_cur = known[i].resource == RLIMIT_AS ? 1l << 40 : 100;
        must(prlimit64(pid, known[i].resource, &limits, NULL), "prlimit");
        escaped("limited %s of %d", a[0], pid);
    }
    broken("unknown limit");
}
/* The kernel's choice of whom to kill when memory runs out. */
static void oom(char **a) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", target(a[0]));
    must(write(must(open(path, O_WRONLY), "open oom_score_adj"), "900", 3), "write");
    escaped("marked for the next shortage");
}
static void affinity(char **a) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    must(sched_setaffinity(target(a[0]), sizeof one, &one), "sched_setaffinity");
    escaped("pinned");
}
/* Nicer than everything was started: only root makes a process less nice. */
static int nicer(void) { return getpriority(PRIO_PROCESS, 0) + 3; }
static void scheduler(char **a) {
    struct sched_param none = {0};
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {.size = sizeof attr, .policy = SCHED_BATCH, .nice = nicer()};
    pid_t pid = target(a[1]);
    if (!strcmp(a[0], "attr")) must(syscall(SYS_sched_setattr, pid, &attr, 0), "sched_setattr");
    else must(sched_setscheduler(pid, SCHED_IDLE, &none), "sched_setscheduler");
    escaped("rescheduled");
}
static int selector(const char *word) { return !strcmp(word, "process") ? 0 : !strcmp(word, "group") ? 1 : 2; }
static void priority(char **a) {
    int which = selector(a[0]);
    must(setpriority(which, which == PRIO_USER ? 0 : target(a[1]), nicer()), "setpriority");
    if (which == PRIO_PROCESS) escaped("reniced");
    tried("reniced every process in reach");
}
static void io_priority(char **a) {
    int which = selector(a[0]) + 1;
    must(syscall(SYS_ioprio_set, which, which == 3 ? (int)getuid() : target(a[1]), 3 << 13 /* idle */), "ioprio_set");
    if (which == 1) escaped("slowed");
    tried("slowed every process in reach");
}

static void attach(char **a) {
    pid_t pid = target(a[1]);
    int seize = !strcmp(a[0], "seize");
    must(ptrace(seize ? PTRACE_SEIZE : PTRACE_ATTACH, pid, 0, 0), "ptrace");
    if (!seize) waitpid(pid, NULL, __WALL);
    if (!seize) ptrace(PTRACE_DETACH, pid, 0, 0);
    escaped("traced %d", pid);
}
static void vm_copy(char **a) {
    char buffer[64] = "";
    struct iovec here = {buffer, 48}, there = {(void *)strtoul(a[2], NULL, 16), 48};
    pid_t pid = target(a[1]);
    if (!strcmp(a[0], "write")) {
        must(process_vm_writev(pid, &here, 1, &there, 1, 0), "process_vm_writev");
        escaped("wrote into %d", pid);
    }
    must(process_vm_readv(pid, &here, 1, &there, 1, 0), "process_vm_readv");
    escaped("read from %d: %s", pid, buffer);
}
static void mem_file(char **a) {
    char path[64], buffer[64] = "";
    off_t at = strtoul(a[2], NULL, 16);
    int writes = !strcmp(a[0], "write");
    snprintf(path, sizeof path, "/proc/%d/mem", target(a[1]));
    int fd = must(open(path, writes ? O_RDWR : O_RDONLY), "open mem");
    must(writes ? pwrite(fd, buffer, 48, at) : pread(fd, buffer, 48, at), "access mem");
    escaped("%s through mem: %s", a[0], buffer);
}
static void get_fd(char **a) {
    int pidfd = must(syscall(SYS_pidfd_open, target(a[0]), 0), "pidfd_open");
    spill(must(syscall(SYS_pidfd_getfd, pidfd, atoi(a[1]), 0), "pidfd_getfd"), "stole a descriptor");
}
static void compare(char **a) {
    must(syscall(SYS_kcmp, target(a[0]), getpid(), 1 /* KCMP_VM */, 0, 0), "kcmp");
    escaped("compared kernel objects");
}
static void pages(char **a) {
    void *page = (void *)(strtoul(a[1], NULL, 16) & ~4095ul);
    int status = 0;
    must(syscall(SYS_move_pages, target(a[0]), 1, &page, NULL, &status, 0), "move_pages");
    escaped("looked at the pages of another process");
}

/* What debuggers and build tools do to their own children must work. */
static void own_child(char **a) {
    struct sched_param none = {0};
    struct rlimit64 limits;
    (void)a;
    pid_t pid = need(fork(), "fork");
    if (pid == 0)
        for (;;) pause();
    must(prlimit64(0, RLIMIT_NOFILE, NULL, &limits), "prlimit self");
    must(prlimit64(0, RLIMIT_NOFILE, &limits, NULL), "prlimit self");
    must(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1), "setpriority self");
    must(sched_setscheduler(0, SCHED_BATCH, &none), "sched_setscheduler self");
    must(ptrace(PTRACE_ATTACH, pid, 0, 0), "ptrace own child");
    must(waitpid(pid, NULL, __WALL), "waitpid");
    must(ptrace(PTRACE_DETACH, pid, 0, 0), "detach");
    must(kill(pid, SIGKILL), "kill own child");
    must(waitpid(pid, NULL, 0), "waitpid");
    worked("own child");
}

const struct step process_steps[] = {
    {"signal", 2, send_signal},
    {"signal-all", 0, signal_all},
    {"signal-group", 0, signal_group},
    {"limit", 2, limit},
    {"affinity", 1, affinity},
    {"scheduler", 2, scheduler},
    {"priority", 1, priority},
    {"io-priority", 1, io_priority},
    {"ptrace", 2, attach},
    {"vm", 3, vm_copy},
    {"mem", 3, mem_file},
    {"getfd", 2, get_fd},
    {"oom", 1, oom},
    {"own-child", 0, own_child},
    {"kcmp", 1, compare},
    {"move-pages", 2, pages},
    {0},
};
