/* Starting programs that should have more power, or less confinement, than the child that starts them. */
#include "attack.h"
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Said by a set-uid or set-gid copy of this program. */
static void who(char **a) {
    (void)a;
    if (geteuid() != getuid() || getegid() != getgid()) escaped("effective uid %d gid %d", geteuid(), getegid());
    errno = EPERM;
    blocked("effective ids did not change");
}
static void run(char **a) {
    execv(a[0], a);
    blocked("execv");
}
/* Runs a set-uid program of the system to its end and looks at the ids of the zombie. */
static void system_setuid(char **a) {
    char path[64], line[256];
    int real = 0, effective = 0;
    siginfo_t info;
    pid_t pid = need(fork(), "fork");
    if (pid == 0) {
        int quiet = open("/dev/null", O_RDWR);
        dup2(quiet, 0), dup2(quiet, 1), dup2(quiet, 2);
        execl(a[0], a[0], "--help", NULL);
        _exit(99);
    }
    need(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), "waitid");
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Uid: %d %d", &real, &effective) == 2) break;
    waitpid(pid, NULL, 0); /* a zombie of root would stand in the way of other attacks of this user */
    if (!status) broken("/proc/pid/status");
    if (real != effective) escaped("%s ran with uid %d", a[0], effective);
    errno = EPERM;
    blocked(info.si_status == 99 ? "exec" : "ran without its set-uid bit");
}
static void make_setuid(char **a) {
    must(chmod(a[0], 04755), "chmod 4755");
    escaped("made a set-uid program");
}
static void become_root(char **a) {
    (void)a;
    must(setresuid(0, 0, 0), "setresuid");
    escaped("became root");
}

static void copy_self(int to) {
    char block[1 << 16];
    int from = need(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "open self");
    for (long got; (got = need(read(from, block, sizeof block), "read self")) > 0;)
        need(write(to, block, got), "copy self");
    close(from);
}
/* The copy runs the rest of the chain: `memfd read PATH`. */
static void from_memory(char **a) {
    extern char **environ;
    int fd = need(syscall(SYS_memfd_create, "copy", 0), "memfd_create");
    copy_self(fd);
    syscall(SYS_execveat, fd, "", a - 1, environ, AT_EMPTY_PATH);
    blocked("execveat");
}
#ifdef __x86_64__
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#define LOADER "/lib/ld-linux-aarch64.so.1"
#endif
/* The dynamic loader runs a program that has no execute permission. */
static void by_loader(char **a) {
    char *argv[] = {LOADER, a[0], a[1], a[2], NULL};
    int fd = need(open(a[0], O_CREAT | O_TRUNC | O_WRONLY, 0600), "create copy");
    copy_self(fd);
    close(fd);
    execv(argv[0], argv);
    blocked("loader");
}
static void no_new_privs(char **a) {
    (void)a;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) escaped("may gain privileges");
    errno = EPERM;
    blocked("no_new_privs");
}

const struct step exec_steps[] = {
    {"who", 0, who},
    {"exec", 1, run},
    {"system-setuid", 1, system_setuid},
    {"make-setuid", 1, make_setuid},
    {"become-root", 0, become_root},
    {"memfd", 1, from_memory},
    {"loader", 3, by_loader},
    {"no-new-privs", 0, no_new_privs},
    {0},
};
