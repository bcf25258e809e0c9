/* Ways to a file that do not go through its name: handles, leases, watches, and descriptors that leaked in. */
#include "attack.h"
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>

static void handle_read(char **a) {
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount_id, near = open(a[1], O_RDONLY | O_DIRECTORY);
    if (near < 0) near = must(open(a[1], O_PATH | O_DIRECTORY), "anchor");
    must(name_to_handle_at(AT_FDCWD, a[0], &handle.head, &mount_id, 0), "name_to_handle_at");
    spill(must(open_by_handle_at(near, &handle.head, O_RDONLY), "open_by_handle_at"), "read by handle");
}
/* With a handle of no size: EINVAL says that the kernel looked at the call, before it asks who calls. */
static void handle_reach(char **a) {
    struct file_handle none = {0};
    (void)a;
    if (open_by_handle_at(AT_FDCWD, &none, O_RDONLY) < 0 && errno != EINVAL) blocked("open_by_handle_at");
    escaped("open_by_handle_at reaches the kernel");
}

static void lease(char **a) {
    int fd = must(open(a[1], O_RDONLY), "open");
    must(syscall(SYS_fcntl, fd, widened(a[0], F_SETLEASE), F_RDLCK), "F_SETLEASE");
    escaped("took a lease");
}
static void dnotify(char **a) {
    signal(SIGIO, SIG_IGN);
    must(fcntl(must(open(a[0], O_RDONLY), "open"), F_NOTIFY, DN_MODIFY | DN_CREATE), "F_NOTIFY");
    escaped("watches a directory");
}
static void inotify(char **a) {
    must(inotify_add_watch(need(inotify_init1(0), "inotify_init1"), a[0], IN_ALL_EVENTS), "inotify_add_watch");
    escaped("watches");
}
/* Through a descriptor that only names it, so that the path says nothing. */
static void inotify_fd(char **a) {
    char path[64], *args[] = {path, NULL};
    snprintf(path, sizeof path, "/proc/self/fd/%ld", must(open(a[0], O_PATH), "open O_PATH"));
    inotify(args);
}
/* Makes a file in a watched folder, and hears of it. */
static void watch_own(char **a) {
    char path[4096], heard[4096];
    struct inotify_event *event = (void *)heard;
    int watch = need(inotify_init1(IN_NONBLOCK), "inotify_init1");
    must(inotify_add_watch(watch, a[0], IN_CREATE), "inotify_add_watch");
    snprintf(path, sizeof path, "%s/%s", a[1], "watched");
    need(close(need(open(path, O_CREAT | O_WRONLY, 0600), "create")), "close");
    unlink(path);
    must(read(watch, heard, sizeof heard), "read");
    if (strcmp(event->name, "watched")) errno = 0, blocked("heard of another file");
    worked("heard of it");
}
static void stat_path(char **a) {
    struct stat st;
    must(stat(a[0], &st), "stat");
    escaped("knows the size");
}

static void inherited_read(char **a) {
    (void)a;
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) spill(fd, "inherited descriptor");
    errno = EBADF;
    blocked("nothing above 2");
}
static void inherited_dir(char **a) {
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) spill(must(openat(fd, a[0], O_RDONLY), "openat"), "inherited directory");
    errno = EBADF;
    blocked("nothing above 2");
}
static void inherited_chdir(char **a) {
    for (int fd = 3; fd < 1024; fd++)
        if (fchdir(fd) == 0) spill(must(open(a[0], O_RDONLY), "open"), "inherited directory, entered");
    blocked("fchdir");
}
static void stdin_dir(char **a) { spill(must(openat(0, a[0], O_RDONLY), "openat"), "directory on stdin"); }
static void stdin_reopen(char **a) {
    (void)a;
    int fd = must(open("/proc/self/fd/0", O_WRONLY | O_APPEND), "open /proc/self/fd/0");
    must(write(fd, "pwned\n", 6), "write");
    escaped("wrote to a file that was given for reading");
}
static void stdin_meta(char **a) {
    (void)a;
    must(fchmod(0, 0777), "fchmod");
    escaped("changed the mode of a file that was given for reading");
}

const struct step handle_steps[] = {
    {"handle-read", 2, handle_read},
    {"handle-reach", 0, handle_reach},
    {"lease", 2, lease},
    {"dnotify", 1, dnotify},
    {"inotify", 1, inotify},
    {"inotify-fd", 1, inotify_fd},
    {"watch-own", 2, watch_own},
    {"stat", 1, stat_path},
    {"inherited-read", 0, inherited_read},
    {"inherited-dir", 1, inherited_dir},
    {"inherited-chdir", 1, inherited_chdir},
    {"stdin-dir", 1, stdin_dir},
    {"stdin-reopen", 0, stdin_reopen},
    {"stdin-meta", 0, stdin_meta},
    {0},
};
