/* Processes that try to outlive their session. Each holds a file lock, by which an observer outside can tell. */
#include "attack.h"
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void detach(void) {
    int quiet = open("/dev/null", O_RDWR);
    setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    for (int number = 1; number < 32; number++)
        if (number != SIGALRM) signal(number, SIG_IGN);
    dup2(quiet, 0), dup2(quiet, 1), dup2(quiet, 2);
}
/* A chain of processes that each live for a moment: a hunt by pid always comes too late. Ends with its world. */
static void flutter(const char *lock) {
    signal(SIGCHLD, SIG_IGN);
    while (access(lock, F_OK) == 0) {
        pid_t pid = fork();
        if (pid > 0) _exit(0);
        if (pid < 0) sched_yield();
    }
    _exit(0);
}
/* A `sibling` has the parent of the command as its own parent: the one that waits for it. */
static pid_t first_fork(const char *kind) {
    return need(!strcmp(kind, "sibling") ? syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) : fork(), "fork");
}
static void survivor(char **a) {
    int ready[2], lock = must(open(a[1], O_CREAT | O_RDWR | O_CLOEXEC, 0600), "open lock");
    need(flock(lock, LOCK_EX | LOCK_NB), "flock");
    need(pipe2(ready, O_CLOEXEC), "pipe");
    if (first_fork(a[0]) == 0) {
        detach();
        if (strcmp(a[0], "sibling") && fork() > 0) _exit(0);
        alarm(60); /* so that a failed test leaves nothing for long */
        dprintf(lock, "%d\n", getpid());
        if (write(ready[1], "x", 1) != 1) _exit(1);
        close(ready[1]), close(ready[0]);
        if (!strcmp(a[0], "flutter")) flutter(a[1]);
        for (;;) pause();
    }
    char byte;
    need(read(ready[0], &byte, 1), "wait for the survivor");
    if (a[2] && !strcmp(a[2], "stay")) {
        printf("LEFT\n");
        alarm(60);
        for (;;) pause();
    }
    tried("left a process behind");
}

/* Keeps the one that reaps busy for ever: many orphans that stay, and chains of processes that each are one for a
 * moment. The lock is held by them all. `hungry` takes memory besides. */
static void swarm(char **a) {
    int start[2], lock = need(open(a[2], O_CREAT | O_RDWR | O_CLOEXEC, 0600), "open lock");
    char none;
    struct rlimit few = {2500, 2500}; /* zombies included: enough for the attack, too few to harm the machine */
    need(flock(lock, LOCK_EX | LOCK_NB), "flock");
    need(pipe2(start, O_CLOEXEC), "pipe");
    dprintf(lock, "%d\n", getpid());
    for (int i = 0, stay = atoi(a[1]); i < stay + 64; i++) {
        pid_t pid = need(fork(), "fork");
        if (pid == 0) {
            if (fork() != 0) _exit(0);
            close(start[1]);
            detach();
            if (i >= stay && read(start[0], &none, 1) == 0) setrlimit(RLIMIT_NPROC, &few), flutter(a[2]);
            alarm(60);
            for (;;) pause();
        }
        waitpid(pid, NULL, 0);
    }
    printf("LEFT\n");
    alarm(60);
    if (strcmp(a[0], "hungry")) close(start[1]);
    for (int i = 0; i < 100 && !strcmp(a[0], "hungry"); i++) {
        if (i == 10) close(start[1]);
        char *part = malloc(4 << 20);
        if (part) memset(part, 1, 4 << 20);
    }
    for (;;) pause();
}

const struct step survivor_steps[] = {
    {"swarm", 3, swarm},
    {"survivor", 2, survivor},
    {0},
};
