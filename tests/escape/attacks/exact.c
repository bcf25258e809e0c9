/* Every way to open, and what came of it, in lines that can be compared with those of another run. */
#include "attack.h"
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char *dir;
static int dirfd_;

/* Each attempt has a file, a name, a link and a dangling link of its own: nothing is put back between them. */
static int turn;
enum { TURNS = 1200 };

/* `@` stands for the number of this attempt. */
static char *numbered(const char *name) {
    static char names[8][512];
    static int next;
    char *to = names[next++ % 8], number[16];
    char *at = to;
    snprintf(number, sizeof number, "%d", turn);
    for (; *name; name++)
        if (*name == '@') at = stpcpy(at, number);
        else *at++ = *name;
    *at = 0;
    return to;
}
static char *in(const char *name) {
    static char path[8][6000];
    static int next;
    char *at = path[next++ % 8];
    snprintf(at, sizeof *path, "%s/%s", dir, numbered(name));
    return at;
}

static void file(const char *name) {
    int fd = need(open(in(name), O_WRONLY | O_CREAT | O_EXCL, 0644), "prepare");
    need(write(fd, "text", 4), "prepare");
    close(fd);
}
static void prepare(char **a) {
    static const char *const links[][2] = {{"loop", "loop"}, {"..", "folder/up"}, {"/etc/passwd", "absolute"}};
    dir = a[0];
    umask(022);
    need(mkdir(in("folder"), 0755), "mkdir");
    file("file"), file("folder/inside"), file("held");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) need(symlink(links[i][0], in(links[i][1])), "symlink");
    for (turn = 0; turn < TURNS; turn++) {
        file("file@");
        need(symlink(numbered("file@"), in("link@")), "symlink");
        need(symlink(numbered("made@"), in("dangling@")), "symlink");
    }
    worked("prepared");
}

/* errno, or: how it is open, what it is, how it was made, and where writing begins. */
static void tell(const char *what, long fd) {
    struct stat s;
    int error = errno;
    errno = ERANGE;
    if (++turn >= TURNS) broken("more attempts than files");
    errno = error;
    if (fd < 0) {
        printf("EXACT %s: %s\n", what, strerrorname_np(errno));
        return;
    }
    need(fstat((int)fd, &s), "fstat");
    int path = fcntl((int)fd, F_GETFL) & O_PATH;
    int wrote = !path && (fcntl((int)fd, F_GETFL) & O_ACCMODE) != O_RDONLY && S_ISREG(s.st_mode) ? (int)write((int)fd, "w", 1) : 0;
    printf("EXACT %s: flags %#o cloexec %d mode %#o size %ld at %ld links %ld wrote %d\n", what,
           (unsigned)fcntl((int)fd, F_GETFL), fcntl((int)fd, F_GETFD), s.st_mode, S_ISDIR(s.st_mode) ? 0L : (long)s.st_size,
           path ? 0L : (long)lseek((int)fd, 0, SEEK_CUR), S_ISDIR(s.st_mode) ? 0L : (long)s.st_nlink, wrote);
    close((int)fd);
}

static long how(int at, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve) {
    struct open_how h = {.flags = flags, .mode = mode, .resolve = resolve};
    return syscall(SYS_openat2, at, path, &h, sizeof h);
}

static void plain_flags(void) {
    static const struct { const char *name; int flags; } flags[] = {
        {"rdonly", O_RDONLY}, {"wronly", O_WRONLY}, {"rdwr", O_RDWR}, {"ioctl", 3}, {"cloexec", O_CLOEXEC},
        {"append", O_WRONLY | O_APPEND}, {"rdwr-append", O_RDWR | O_APPEND}, {"nonblock", O_NONBLOCK},
        {"trunc", O_WRONLY | O_TRUNC}, {"rdonly-trunc", O_RDONLY | O_TRUNC}, {"sync", O_WRONLY | O_SYNC},
        {"dsync", O_WRONLY | O_DSYNC}, {"noatime", O_RDONLY | O_NOATIME}, {"noctty", O_RDONLY | O_NOCTTY},
        {"nofollow", O_RDONLY | O_NOFOLLOW}, {"directory", O_RDONLY | O_DIRECTORY}, {"creat", O_WRONLY | O_CREAT},
        {"creat-excl", O_WRONLY | O_CREAT | O_EXCL}, {"excl", O_WRONLY | O_EXCL}, {"creat-rdonly", O_RDONLY | O_CREAT},
        {"creat-trunc", O_RDWR | O_CREAT | O_TRUNC}, {"creat-directory", O_RDONLY | O_CREAT | O_DIRECTORY},
        {"path", O_PATH}, {"path-cloexec", O_PATH | O_CLOEXEC}, {"path-rdwr", O_PATH | O_RDWR | O_TRUNC},
        {"path-creat", O_PATH | O_CREAT}, {"async", O_RDONLY | O_ASYNC}, {"unknown", O_RDONLY | 1 << 29},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char what[128];
        static const char *const names[] = {"file@", "new@", "folder", "link@", "dangling@", "loop", "no/folder",
                                            "file@/x", "folder/", "file@/", "new@/"};
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            snprintf(what, sizeof what, "%s of %s", flags[i].name, names[n]);
            tell(what, openat(AT_FDCWD, in(names[n]), flags[i].flags, 0640));
            snprintf(what, sizeof what, "%s of %s by openat2", flags[i].name, names[n]);
            tell(what, how(dirfd_, numbered(names[n]), (unsigned)flags[i].flags, flags[i].flags & O_CREAT ? 0640 : 0, 0));
        }
    }
}

static void modes(void) {
    static const int masks[] = {0, 022, 077, 0777};
    static const int wanted[] = {0, 0400, 0644, 0666, 0777, 01777, 04755, 06777, 0100644};
    char what[128];
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
        for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
            mode_t before = umask((mode_t)masks[m]);
            snprintf(what, sizeof what, "mode %o umask %o", (unsigned)wanted[w], (unsigned)masks[m]);
            tell(what, open(in("new@"), O_RDWR | O_CREAT | O_EXCL, wanted[w]));
            tell("the same by creat", creat(in("new@"), (mode_t)wanted[w]));
            tell("the same by openat2", how(AT_FDCWD, in("new@"), O_RDWR | O_CREAT, (uint64_t)wanted[w], 0));
            umask(before);
        }
}

static void resolving(void) {
    static const struct { const char *name; uint64_t bits; } ways[] = {
        {"beneath", RESOLVE_BENEATH}, {"in-root", RESOLVE_IN_ROOT}, {"no-symlinks", RESOLVE_NO_SYMLINKS},
        {"no-magiclinks", RESOLVE_NO_MAGICLINKS}, {"no-xdev", RESOLVE_NO_XDEV}, {"both", RESOLVE_BENEATH | RESOLVE_IN_ROOT},
        {"unknown", 1 << 20},
    };
    static const char *const names[] = {"file", "folder/inside", "link", "folder/../file", "../outside/file", "folder/up/file",
                                        "absolute", "/file", "/proc/self/exe", "loop", "nothing"};
    char what[128];
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            snprintf(what, sizeof what, "%s of %s", ways[w].name, names[n]);
            tell(what, how(dirfd_, names[n], O_RDONLY, 0, ways[w].bits));
        }
        snprintf(what, sizeof what, "%s of the whole path", ways[w].name);
        tell(what, how(dirfd_, in("file"), O_RDONLY, 0, ways[w].bits));
    }
}

static void structs(void) {
    struct { struct open_how how; uint64_t more[2]; } longer = {.how = {.flags = O_RDONLY}};
    const char *path = in("file");
    tell("a short struct", syscall(SYS_openat2, AT_FDCWD, path, &longer, 8));
    tell("a longer struct", syscall(SYS_openat2, AT_FDCWD, path, &longer, sizeof longer));
    longer.more[1] = 1;
    tell("a longer struct with more in it", syscall(SYS_openat2, AT_FDCWD, path, &longer, sizeof longer));
    tell("a struct of 5000", syscall(SYS_openat2, AT_FDCWD, path, &longer, 5000));
    tell("no struct", syscall(SYS_openat2, AT_FDCWD, path, NULL, sizeof longer.how));
    tell("mode without creation", how(AT_FDCWD, path, O_RDONLY, 0644, 0));
    tell("too much of a mode", how(AT_FDCWD, in("new@"), O_RDWR | O_CREAT, 0200644, 0));
    tell("high flags", how(AT_FDCWD, path, 1ull << 40, 0, 0));
    tell("high resolve", how(AT_FDCWD, path, 0, 0, 1ull << 40));
    tell("path and more", how(AT_FDCWD, path, O_PATH | O_APPEND, 0, 0));
}

static void pointers(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) broken("mmap");
    need(munmap(pages + 4096, 4096), "munmap");
    char *path = in("file"), *end = pages + 4096 - strlen(path) - 1;
    strcpy(end, path);
    tell("a path that ends with its page", open(end, O_RDONLY));
    memmove(end + 1, end, strlen(path));
    tell("a path that does not end", open(end + 1, O_RDONLY));
    tell("a path on the last byte", open(pages + 4095, O_RDONLY));
    tell("NULL", syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY));
    tell("eight", open((char *)8, O_RDONLY));
    tell("a path of the kernel's", open((char *)0xffffffff81000000ul, O_RDONLY));
    tell("a path at the end of it all", open((char *)~0ul, O_RDONLY));
    tell("the struct of the kernel's", syscall(SYS_openat2, AT_FDCWD, path, (void *)0xffff888000000000ul, 24));
    tell("an empty path", open("", O_RDONLY));
    tell("an empty path from a folder", openat(dirfd_, "", O_RDONLY));
    static char longest[5000];
    for (int length = 4094; length <= 4097; length++) {
        char what[64];
        memset(longest, '/', sizeof longest);
        strcpy(longest + length - strlen(path), path);
        snprintf(what, sizeof what, "a path of %d bytes", length);
        tell(what, open(longest, O_RDONLY));
    }
    memset(longest, 'x', 4999);
    tell("a path of 4999 bytes", open(longest, O_RDONLY));
    memset(longest + 256, 0, 1);
    tell("a name of 256 bytes", openat(dirfd_, longest, O_RDWR | O_CREAT, 0644));
}

static void detours(void) {
    char path[6000];
    tell("a descriptor that is none", openat(999, "file", O_RDONLY));
    tell("a descriptor that is none, and a whole path", openat(999, in("file"), O_RDONLY));
    int other = need(open(in("file"), O_RDONLY), "open");
    tell("from a file", openat(other, "x", O_RDONLY));
    close(other);
    tell("from a folder", openat(dirfd_, "file", O_RDONLY));
    tell("from a folder, a new one", openat(dirfd_, numbered("new@"), O_RDWR | O_CREAT | O_EXCL, 0600));
    tell("the folder itself", openat(dirfd_, ".", O_RDONLY));
    tell("dots", open(in("./folder/.././/file"), O_RDONLY));
    need(chdir(dir), "chdir");
    tell("from here", open("file", O_RDONLY));
    tell("from here, upwards", open("../outside/file", O_RDONLY));
    int up = snprintf(path, sizeof path, "%s", dir);
    for (int i = 0; i < 40; i++) up += snprintf(path + up, sizeof path - (size_t)up, "/..");
    snprintf(path + up, sizeof path - (size_t)up, "%s/file", dir);
    tell("above the root", open(path, O_RDONLY));
    tell("a temporary file without its way of access", open(dir, O_TMPFILE | O_RDONLY, 0600));
    tell("a temporary file in a file", open(in("file"), O_TMPFILE | O_RDWR, 0600));
}

static void exact(char **a) {
    dir = a[0];
    umask(022);
    dirfd_ = need(open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), "open O_PATH");
    plain_flags();
    modes();
    resolving();
    structs();
    pointers();
    detours();
    worked("all was tried");
}

const struct step exact_steps[] = {{"exact", 1, exact}, {"exact-prepare", 1, prepare}, {0}};
