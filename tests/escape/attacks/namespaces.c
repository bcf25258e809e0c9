/* Namespaces and mounts: making new ones, joining others, taking masks away. */
#include "attack.h"
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

int mount(const char *, const char *, const char *, unsigned long, const void *);
int umount2(const char *, int);
enum { BIND = 4096, REMOUNT = 32, DETACH = 2 };

/* A word such as `user+mnt` as clone flags. */
static unsigned long flags(const char *word) {
    static const struct {
        const char *name;
        unsigned long flag;
    } known[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},   {"pid", CLONE_NEWPID},       {"net", CLONE_NEWNET},
                 {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}, {"time", CLONE_NEWTIME}};
    unsigned long all = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(word, known[i].name)) all |= known[i].flag;
    return all;
}

static uid_t outer;       /* the uid before it is lost in a namespace without a map */
static int has_own_mounts; /* root may change mounts only where the machine does not see it */

static void do_unshare(char **a) {
    outer = getuid();
    must(unshare(flags(a[0])), "unshare");
    has_own_mounts = (flags(a[0]) & (CLONE_NEWUSER | CLONE_NEWNS)) == (CLONE_NEWUSER | CLONE_NEWNS);
    escaped("unshared %s", a[0]);
}
/* The kernel reads the flags of unshare as a long, those of clone too: bits above 32 must not hide anything. */
static void do_clone(char **a) {
    unsigned long high = a[1] && !strcmp(a[1], "wide") ? 1ul << 40 : 0;
    long pid = must(syscall(SYS_clone, flags(a[0]) | SIGCHLD | high, 0, 0, 0, 0), "clone");
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
    escaped("cloned into %s", a[0]);
}
static void do_clone3(char **a) {
    struct clone_args args = {.flags = flags(a[0]), .exit_signal = SIGCHLD};
    long pid = must(syscall(SYS_clone3, &args, sizeof args), "clone3");
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
    escaped("cloned into %s", a[0]);
}
static void join(char **a) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", target(a[0]), a[1]);
    must(setns(must(open(path, O_RDONLY), "open ns"), 0), "setns");
    escaped("joined %s", path);
}
static void join_pidfd(char **a) {
    must(setns(must(syscall(SYS_pidfd_open, target(a[0]), 0), "pidfd_open"), flags(a[1])), "setns pidfd");
    escaped("joined by pidfd");
}
static void join_reach(char **a) {
    (void)a;
    if (setns(-1, 0) < 0 && errno != EBADF) blocked("setns");
    escaped("setns reaches the kernel");
}
/* A new root user in a new namespace: the start of most privilege escalations. */
static void uid_map(char **a) {
    char line[64];
    (void)a;
    snprintf(line, sizeof line, "0 %d 1", outer);
    int fd = must(open("/proc/self/uid_map", O_WRONLY), "open uid_map");
    must(write(fd, line, strlen(line)), "write uid_map");
    if (getuid() != 0) blocked("still not root");
    escaped("became root in a namespace");
}

static void spare_the_machine(void) {
    errno = ECANCELED;
    if (getuid() == 0 && !has_own_mounts) broken("root would change the machine itself");
}
static void mount_tmpfs(char **a) {
    spare_the_machine();
    must(mount("none", a[0], "tmpfs", 0, ""), "mount tmpfs");
    escaped("mounted");
}
static void bind(char **a) {
    spare_the_machine();
    mkdir(a[1], 0755);
    must(mount(a[0], a[1], NULL, BIND, NULL), "mount bind");
    escaped("bound");
}
static void remount(char **a) {
    spare_the_machine();
    must(mount(NULL, a[0], NULL, BIND | REMOUNT, NULL), "remount");
    escaped("remounted writable");
}
static void take_mask(char **a) {
    spare_the_machine();
    must(umount2(a[0], DETACH), "umount2");
    escaped("unmounted");
}
/* Names that do not exist: ENOENT says that the kernel resolved the name, so nothing stood before it. */
static void mount_reach(char **a) {
    (void)a;
    if (mount("none", "/nonexistent-mount-point", "tmpfs", 0, "") < 0 && errno != ENOENT) blocked("mount");
    escaped("mount reaches the kernel");
}
static void umount_reach(char **a) {
    (void)a;
    if (umount2("/nonexistent-mount-point", DETACH) < 0 && errno != ENOENT) blocked("umount2");
    escaped("umount2 reaches the kernel");
}
static void root_change(char **a) {
    must(chroot(a[0]), "chroot");
    escaped("changed root");
}
static void root_pivot(char **a) {
    spare_the_machine();
    mkdir(a[0], 0755);
    if (mount(NULL, "/", NULL, 1 << 18 | 16384 /* private, recursive */, NULL) < 0) blocked("make private");
    must(mount(a[0], a[0], NULL, BIND, NULL), "mount bind");
    must(chdir(a[0]), "chdir");
    must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
    escaped("pivoted");
}
static void fs_open(char **a) {
    (void)a;
    must(syscall(SYS_fsopen, "tmpfs", 0), "fsopen");
    escaped("opened a file system");
}
static void fs_pick(char **a) {
    must(syscall(SYS_fspick, AT_FDCWD, a[0], 0), "fspick");
    escaped("picked a file system");
}
static void tree_open(char **a) {
    int fd = must(syscall(SYS_open_tree, AT_FDCWD, a[0], 1 /* OPEN_TREE_CLONE */), "open_tree");
    spill(must(openat(fd, a[1], O_RDONLY), "openat in the clone"), "read through a cloned mount");
}
static void tree_move(char **a) {
    spare_the_machine();
    int fd = must(syscall(SYS_open_tree, AT_FDCWD, a[0], 1), "open_tree");
    mkdir(a[1], 0755);
    must(syscall(SYS_move_mount, fd, "", AT_FDCWD, a[1], 4 /* F_EMPTY_PATH */), "move_mount");
    escaped("moved a mount");
}
static void tree_attr(char **a) {
    spare_the_machine();
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
    must(syscall(SYS_mount_setattr, AT_FDCWD, a[0], AT_RECURSIVE, &attr, sizeof attr), "mount_setattr");
    escaped("cleared the read-only attribute");
}

const struct step namespace_steps[] = {
    {"unshare", 1, do_unshare},
    {"clone", 1, do_clone},
    {"clone3", 1, do_clone3},
    {"setns", 2, join},
    {"setns-pidfd", 2, join_pidfd},
    {"setns-reach", 0, join_reach},
    {"uid-map", 0, uid_map},
    {"mount-tmpfs", 1, mount_tmpfs},
    {"bind", 2, bind},
    {"remount", 1, remount},
    {"umount", 1, take_mask},
    {"mount-reach", 0, mount_reach},
    {"umount-reach", 0, umount_reach},
    {"chroot", 1, root_change},
    {"pivot", 1, root_pivot},
    {"fsopen", 0, fs_open},
    {"fspick", 1, fs_pick},
    {"open-tree", 2, tree_open},
    {"move-mount", 2, tree_move},
    {"mount-setattr", 1, tree_attr},
    {0},
};
