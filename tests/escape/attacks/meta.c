/* Changing a file without opening it for writing: modes, owners, times, attributes, flags. */
#include "attack.h"
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Newer than many installed headers; the numbers are the same on every architecture. */
enum { NR_fchmodat2 = 452, NR_setxattrat = 463, NR_removexattrat = 466, NR_file_getattr = 468, NR_file_setattr = 469 };

static const struct timespec old_times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
static char proc_path[64];

static int held(const char *path, int flags) {
    int fd = must(open(path, flags | O_CLOEXEC), flags & O_PATH ? "open O_PATH" : "open O_RDONLY");
    snprintf(proc_path, sizeof proc_path, "/proc/self/fd/%d", fd);
    return fd;
}

/* Routes: by path, by read-only descriptor, by /proc/self/fd of an O_PATH one, by the newest call. */
static int chmod_by(const char *route, const char *path) {
    if (!strcmp(route, "path")) return chmod(path, 0777);
    if (!strcmp(route, "fd")) return fchmod(held(path, O_RDONLY), 0777);
    if (!strcmp(route, "proc")) return held(path, O_PATH), chmod(proc_path, 0777);
    return syscall(NR_fchmodat2, held(path, O_PATH), "", 0777, AT_EMPTY_PATH);
}
static int chown_by(const char *route, const char *path) {
    uid_t u = getuid();
    gid_t g = getgid();
    if (!strcmp(route, "path")) return lchown(path, u, g);
    if (!strcmp(route, "fd")) return fchown(held(path, O_RDONLY), u, g);
    if (!strcmp(route, "proc")) return held(path, O_PATH), chown(proc_path, u, g);
    return fchownat(held(path, O_PATH), "", u, g, AT_EMPTY_PATH);
}
static int utimes_by(const char *route, const char *path) {
    if (!strcmp(route, "path")) return utimensat(AT_FDCWD, path, old_times, AT_SYMLINK_NOFOLLOW);
    if (!strcmp(route, "fd")) return futimens(held(path, O_RDONLY), old_times);
    if (!strcmp(route, "proc")) return held(path, O_PATH), utimensat(AT_FDCWD, proc_path, old_times, 0);
    return utimensat(held(path, O_PATH), "", old_times, AT_EMPTY_PATH);
}
static int setxattr_by(const char *route, const char *path) {
    struct {
        uint64_t value;
        uint32_t size, flags;
    } args = {(uintptr_t) "pwned", 5, 0};
    if (!strcmp(route, "path")) return lsetxattr(path, "user.pwned", "pwned", 5, 0);
    if (!strcmp(route, "fd")) return fsetxattr(held(path, O_RDONLY), "user.pwned", "pwned", 5, 0);
    if (!strcmp(route, "proc")) return held(path, O_PATH), setxattr(proc_path, "user.pwned", "pwned", 5, 0);
    return syscall(NR_setxattrat, AT_FDCWD, path, 0, "user.pwned", &args, sizeof args);
}
static int rmxattr_by(const char *route, const char *path) {
    if (!strcmp(route, "path")) return lremovexattr(path, "user.kept");
    if (!strcmp(route, "fd")) return fremovexattr(held(path, O_RDONLY), "user.kept");
    if (!strcmp(route, "proc")) return held(path, O_PATH), removexattr(proc_path, "user.kept");
    return syscall(NR_removexattrat, AT_FDCWD, path, 0, "user.kept");
}

/* A thread rewrites the path while the kernel, and the supervisor before it, read it. Each value stays a moment: a path
 * that is half one and half the other leads nowhere. */
static char racing[4200];
static const char *faces[2];
static volatile int turns, stop;
static void *rewriter(void *none) {
    for (; !stop; turns++) {
        memcpy(racing, faces[turns % 2], strlen(faces[turns % 2]) + 1);
        for (volatile int moment = 0; moment < 200; moment++) {
        }
    }
    return none;
}
static void meta_race(char **a) {
    pthread_t thread;
    faces[0] = a[1], faces[1] = a[2];
    strcpy(racing, a[1]);
    errno = pthread_create(&thread, NULL, rewriter, NULL);
    if (errno) broken("thread");
    /* On a busy machine both threads may share a processor: until this one has seen either face often enough. */
    size_t at = 0;
    while (faces[0][at] == faces[1][at]) at++;
    for (int i = 0, seen = 0, last = 0; i < 2000 || turns < 100000 || seen < 50; i++) {
        chmod(racing, 0640 | i % 8);
        int face = ((volatile char *)racing)[at];
        seen += face != last, last = face;
    }
    stop = 1;
    tried("raced");
}

static void meta(char **a) {
    static const struct {
        const char *name;
        int (*by)(const char *, const char *);
    } ops[] = {{"chmod", chmod_by},
               {"chown", chown_by},
               {"utimes", utimes_by},
               {"setxattr", setxattr_by},
               {"rmxattr", rmxattr_by}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(ops[i].name, a[0])) continue;
        must(ops[i].by(a[1], a[2]), a[0]);
        escaped("%s by %s", a[0], a[1]);
    }
    broken("unknown metadata call");
}

static void set_flags(char **a) {
    int fd = held(a[1], O_RDONLY), flags = 0;
    must(ioctl(fd, FS_IOC_GETFLAGS, &flags), "FS_IOC_GETFLAGS");
    flags |= FS_NODUMP_FL;
    must(syscall(SYS_ioctl, fd, widened(a[0], FS_IOC_SETFLAGS), &flags), "FS_IOC_SETFLAGS");
    escaped("set flags through a read-only descriptor");
}
static void set_fsx(char **a) {
    int fd = held(a[1], O_RDONLY);
    struct fsxattr attr;
    must(ioctl(fd, FS_IOC_FSGETXATTR, &attr), "FS_IOC_FSGETXATTR");
    attr.fsx_xflags |= FS_XFLAG_NODUMP;
    must(syscall(SYS_ioctl, fd, widened(a[0], FS_IOC_FSSETXATTR), &attr), "FS_IOC_FSSETXATTR");
    escaped("set attributes through a read-only descriptor");
}
static void set_attr(char **a) {
    struct {
        uint64_t xflags;
        uint32_t extsize, extents, project, cow;
    } attr;
    must(syscall(NR_file_getattr, AT_FDCWD, a[0], &attr, sizeof attr, 0), "file_getattr");
    attr.xflags |= FS_XFLAG_NODUMP;
    must(syscall(NR_file_setattr, AT_FDCWD, a[0], &attr, sizeof attr, 0), "file_setattr");
    escaped("set attributes by path");
}
static void set_version(char **a) {
    int fd = held(a[0], O_RDONLY), version = 4711;
    must(ioctl(fd, FS_IOC_SETVERSION, &version), "FS_IOC_SETVERSION");
    escaped("set the inode generation through a read-only descriptor");
}

const struct step meta_steps[] = {
    {"meta", 3, meta},
    {"meta-race", 3, meta_race},
    {"set-flags", 2, set_flags},
    {"set-fsx", 2, set_fsx},
    {"set-attr", 1, set_attr},
    {"set-version", 1, set_version},
    {0},
};
