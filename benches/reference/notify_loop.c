// The least that trapping opens can cost: a program runs under a filter that puts every open to this process, which
// lets the kernel carry each out without looking at it. Nothing is judged, nothing is protected.
//
//   cc -O2 -o notify-loop notify_loop.c && ./notify-loop COMMAND ARGS...
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS _IOW('!', 4, __u64)
#endif

#define TRAP(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

static int install(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        TRAP(SYS_openat),
#ifdef SYS_open
        TRAP(SYS_open),
        TRAP(SYS_creat),
#endif
        TRAP(SYS_openat2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
}

int main(int argc, char **argv)
{
    int ends[2], status;
    if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        char go;
        int listener = install();
        if (listener < 0 || write(ends[1], &listener, sizeof listener) < 0 || read(ends[1], &go, 1) != 1)
            _exit(125);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    close(ends[1]);
    int number;
    if (read(ends[0], &number, sizeof number) != sizeof number)
        return 125;
    int pidfd = syscall(SYS_pidfd_open, pid, 0);
    int listener = syscall(SYS_pidfd_getfd, pidfd, number, 0);
    if (listener < 0 || write(ends[0], "g", 1) != 1)
        return 125;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL /* SYNC_WAKE_UP */);
    for (;;) {
        struct seccomp_notif call;
        memset(&call, 0, sizeof call);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
            struct pollfd poll_end = { listener, POLLIN, 0 };
            if (errno == EINTR)
                continue;
            poll(&poll_end, 1, 0);
            if (poll_end.revents & POLLHUP)
                break;
            continue;
        }
        struct seccomp_notif_resp answer = { call.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE };
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
