/* Helpers of the harness. They run outside the sandbox, as the same user: victims, accomplices, observers. */
#include "attack.h"
#include <arpa/inet.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>

static char memory[64];

static const char *oom_score(void) {
    static char text[16];
    int fd = open("/proc/self/oom_score_adj", O_RDONLY);
    long got = read(fd, text, sizeof text - 1);
    text[got > 0 ? got - 1 : 0] = 0;
    close(fd);
    return text;
}
/* What others could have changed about this process, in one line. */
static void report(void) {
    static const int limits[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_AS};
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("STATE nice %d policy %d io %ld cpus %d memory %.48s limits", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
           syscall(SYS_ioprio_get, 1, 0), CPU_COUNT(&cpus), memory);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit l;
        getrlimit(limits[i], &l);
        printf(" %lu", l.rlim_cur);
    }
    printf(" oom %s\n", oom_score());
}
/* A bystander with a secret in memory, in the environment, in an open file and in the working directory;
 * a `loud` one on its command line too, one that is `apart` in namespaces of its own. */
static void victim(char **a) {
    if (!strcmp(a[2], "apart")) need(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET), "unshare");
    need(setpgid(0, 0), "setpgid");
    need(chdir(a[1]), "chdir");
    int fd = need(open("secret", O_RDONLY), "open");
    strncpy(memory, a[0], sizeof memory - 1);
    if (strcmp(a[2], "loud")) memset(a[0], 'x', strlen(a[0]));
    printf("READY pid=%d addr=%lx fd=%d\n", getpid(), (unsigned long)memory, fd);
    for (char line[16]; fgets(line, sizeof line, stdin);) report();
    exit(0);
}

/* Gives its secret file to every process that connects. */
static void giver(char **a) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char byte = 'x', control[CMSG_SPACE(sizeof(int))] = "";
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int gift = need(open(a[2], O_RDONLY), "open"), gifts = 0;
    int door = need(socket(AF_UNIX, !strcmp(a[0], "stream") ? SOCK_STREAM : SOCK_SEQPACKET, 0), "socket");
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof gift);
    memcpy(CMSG_DATA(head), &gift, sizeof gift);
    strncpy(at.sun_path, a[1], sizeof at.sun_path - 1);
    need(bind(door, (void *)&at, sizeof at), "bind");
    need(listen(door, 4), "listen");
    setvbuf(stdin, NULL, _IONBF, 0);
    printf("READY door=%s\n", a[1]);
    for (struct pollfd ends[2] = {{0, POLLIN, 0}, {door, POLLIN, 0}}; poll(ends, 2, -1) > 0;) {
        if (ends[1].revents) gifts += sendmsg(accept(door, NULL, NULL), &message, 0) > 0;
        if (ends[0].revents & POLLIN) {
            char line[16];
            if (!fgets(line, sizeof line, stdin)) break;
            printf("STATE gifts %d\n", gifts);
        } else if (ends[0].revents) break;
    }
    exit(0);
}

/* A server of its own kind: bound `near`, by a relative name from inside its folder, or bound under a passing name
 * that was then `linked` or `renamed` to the lasting one. The kernel's list of sockets knows none of the three paths.
 * One that is `apart` is in a network namespace of its own, and on no list at all. */
static void listener(char **a) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int visits = 0, door = need(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket"), near = !strcmp(a[0], "near");
    char path[4096];
    if (!strcmp(a[0], "apart")) {
        need(unshare(CLONE_NEWUSER | CLONE_NEWNET), "unshare");
        door = need(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
    }
    need(chdir(a[1]), "chdir");
    snprintf(path, sizeof path, near ? "%s" : "%s/%s.tmp", near ? a[2] : a[1], a[2]);
    if (strlen(path) >= sizeof at.sun_path) errno = ENAMETOOLONG, broken("socket path");
    strcpy(at.sun_path, path);
    need(bind(door, (void *)&at, sizeof at), "bind");
    need(listen(door, 16), "listen");
    if (!strcmp(a[0], "linked")) need(link(path, a[2]), "link"), need(unlink(path), "unlink");
    if (!strcmp(a[0], "renamed") || !strcmp(a[0], "apart")) need(rename(path, a[2]), "rename");
    printf("READY door=%s/%s\n", a[1], a[2]);
    for (char line[16]; fgets(line, sizeof line, stdin); printf("STATE visits %d\n", visits))
        while (accept(door, NULL, NULL) >= 0) visits++;
    exit(0);
}

static int make_terminal(char *name, size_t size) {
    int master = need(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "posix_openpt");
    need(grantpt(master), "grantpt"), need(unlockpt(master), "unlockpt");
    need(ptsname_r(master, name, size), "ptsname");
    return master;
}
/* A terminal of the same user; reports whether another process wrote on it. */
static void host_tty(char **a) {
    char name[64], line[16];
    int master = make_terminal(name, sizeof name), keep = need(open(name, O_RDWR | O_NOCTTY), "open slave");
    (void)a, (void)keep;
    printf("READY tty=%s\n", name);
    while (fgets(line, sizeof line, stdin)) {
        struct pollfd wait = {master, POLLIN, 0};
        printf("STATE written %d\n", poll(&wait, 1, 0));
    }
    exit(0);
}
/* Copies what came out of the terminal. */
static long drain(int master) {
    char block[4096];
    long got = read(master, block, sizeof block);
    if (got > 0) fwrite(block, 1, got, stdout);
    return got;
}
/* Runs a command on a terminal of its own, then looks for input that was not typed. */
static void on_tty(char **a) {
    char name[64], typed[64] = "";
    int status = 0, master = make_terminal(name, sizeof name);
    int slave = need(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC), "open slave");
    pid_t pid = need(fork(), "fork");
    if (pid == 0) {
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        dup2(slave, 0), dup2(slave, 1), dup2(slave, 2);
        execv(a[0], a);
        _exit(127);
    }
    struct pollfd ends[2] = {{need(syscall(SYS_pidfd_open, pid, 0), "pidfd_open"), POLLIN, 0}, {master, POLLIN, 0}};
    while (poll(ends, 2, -1) > 0 && !ends[0].revents)
        if (ends[1].revents) drain(master);
    fcntl(master, F_SETFL, O_NONBLOCK), fcntl(slave, F_SETFL, O_NONBLOCK);
    while (drain(master) > 0) {
    }
    waitpid(pid, &status, 0);
    if (read(slave, typed, sizeof typed - 1) > 0) escaped("the terminal holds input that was not typed: %.20s", typed);
    fflush(stdout);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Stays between the harness and the command as its parent, under the same user. */
static void launch(char **a) {
    int status = 0;
    pid_t pid = need(fork(), "fork");
    if (pid == 0) {
        execv(a[0], a);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
/* Started by root: shows a folder at a second place, to this process alone, and becomes the user with the command. */
static void mounted(char **a) {
    int user = atoi(a[2]);
    need(unshare(CLONE_NEWNS), "unshare");
    need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
    need(mount(a[0], a[1], NULL, MS_BIND, NULL), "bind mount");
    need(setgroups(0, NULL), "setgroups"), need(setgid(user), "setgid"), need(setuid(user), "setuid");
    execv(a[3], a + 3);
    broken("exec");
}
/* Started by root: a network of its own where the loopback has a second address, and a server on all of them; the
 * command becomes the user's. */
static void addressed(char **a) {
    struct ifreq second = {.ifr_name = "lo:1"}, up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(a[1])), .sin6_addr = in6addr_any};
    struct sockaddr_in *address = (void *)&second.ifr_addr;
    int status = 0, user = atoi(a[2]);
    need(unshare(CLONE_NEWNET), "unshare");
    int fd = need(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
    need(ioctl(fd, SIOCSIFFLAGS, &up), "loopback up");
    address->sin_family = AF_INET;
    if (inet_pton(AF_INET, a[0], &address->sin_addr) != 1) broken("address");
    need(ioctl(fd, SIOCSIFADDR, &second), "second address");
    int door = need(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    need(bind(door, (void *)&any, sizeof any), "bind");
    need(listen(door, 4096), "listen");
    pid_t server = need(fork(), "fork");
    if (server == 0)
        for (;;) close(accept(door, NULL, NULL));
    pid_t pid = need(fork(), "fork");
    if (pid == 0) {
        need(setgroups(0, NULL), "setgroups"), need(setgid(user), "setgid"), need(setuid(user), "setuid");
        execv(a[3], a + 3);
        _exit(127);
    }
    close(0);
    waitpid(pid, &status, 0);
    /* A death signal from the user's process would not reach root's. */
    kill(server, SIGKILL);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
/* Prepares the ground before an attack: a private file with its folders, an attribute to lose. */
static void plant(char **a) {
    for (char *slash = a[0]; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(a[0], 0700);
        *slash = '/';
    }
    int fd = need(open(a[0], O_CREAT | O_TRUNC | O_WRONLY, 0600), "create");
    need(dprintf(fd, "%s\n", a[1]), "write");
    worked("planted");
}
static void mark(char **a) {
    need(setxattr(a[0], "user.kept", "1", 1, 0), "setxattr");
    worked("marked");
}
/* Terminals of its own are what tmux and script need. */
static void own_tty(char **a) {
    char name[64], got[8] = "";
    (void)a;
    int master = make_terminal(name, sizeof name), slave = must(open(name, O_RDWR | O_NOCTTY), "open slave");
    must(write(master, "hi\n", 3), "write");
    must(read(slave, got, sizeof got), "read");
    worked("own terminal");
}
/* `now` asks whether the lock is free; `wait` waits until it is. */
static void lock_free(char **a) {
    int fd = need(open(a[1], O_RDWR), "open lock");
    must(flock(fd, LOCK_EX | (!strcmp(a[0], "now") ? LOCK_NB : 0)), "lock is held");
    worked("lock is free");
}
static void hold_temp(char **a) {
    char path[4200];
    snprintf(path, sizeof path, "%s/secret", getenv("TMPDIR") ? getenv("TMPDIR") : "/nonexistent");
    int fd = need(open(path, O_CREAT | O_WRONLY, 0600), "create in TMPDIR");
    need(write(fd, a[0], strlen(a[0])), "write");
    printf("READY path=%s\n", path);
    while (getchar() != EOF) {
    }
    exit(0);
}
/* The file that describes the child's own policy, named by the environment. */
static void cap_file(char **a) {
    const char *path = getenv("NONO_CAP_FILE");
    if (!path) errno = ENOENT, broken("NONO_CAP_FILE is not set");
    if (!strcmp(a[0], "chmod")) must(chmod(path, 0600), "chmod");
    if (!strcmp(a[0], "unlink")) must(unlink(path), "unlink");
    if (!strcmp(a[0], "write")) chmod(path, 0600), must(open(path, O_WRONLY), "open");
    if (!strcmp(a[0], "replace")) {
        char next[4200];
        snprintf(next, sizeof next, "%s.next", path);
        must(open(next, O_CREAT | O_WRONLY, 0600), "create beside");
        must(rename(next, path), "rename");
    }
    escaped("%s of the policy file", a[0]);
}

const struct step host_steps[] = {
    {"victim", 3, victim},
    {"giver", 3, giver},
    {"listener", 3, listener},
    {"host-tty", 0, host_tty},
    {"on-tty", WRAPS, on_tty},
    {"launch", WRAPS, launch},
    {"mounted", WRAPS, mounted},
    {"addressed", WRAPS, addressed},
    {"lock-free", 2, lock_free},
    {"own-tty", 0, own_tty},
    {"plant", 2, plant},
    {"mark", 1, mark},
    {"hold-temp", 1, hold_temp},
    {"cap-file", 1, cap_file},
    {0},
};
