/* Processes that try to outlive their session. Each holds a file lock, by which somebody outside can tell. */
#include "attack.h"
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void detach(void) {
    int quiet = open("/dev/null", O_RDWR);
    setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    for (int number = 1; number < 32; number++)
        if (number != SIGALRM) signal(number, SIG_IGN);
    dup2(quiet, 0), dup2(quiet, 1), dup2(quiet, 2);
}
/* A chain of processes that each live for a moment: whoever hunts by pid always comes too late. Ends with its world. */
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
    tried("left somebody behind");
}

const struct step survivor_steps[] = {
    {"survivor", 2, survivor},
    {0},
};
