/* Reaching files by name: reading, writing, creating, linking, renaming, and the usual detours. */
#include "attack.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

static int held = -1; /* the descriptor that `hold` leaves for later steps */

static void read_path(char **a) { spill(must(open(a[0], O_RDONLY | O_CLOEXEC), "open"), "read"); }

/* Keeps trying while a process outside replaces the file: a closed name may open for a moment, not for good. */
static void until_closed(const char *path, int flags) {
    int fd = 0, opened = 0;
    char text[64];
    printf("WAITING\n");
    wait_for_line();
    for (time_t start = time(NULL); fd >= 0 && time(NULL) < start + 4;)
        if ((fd = open(path, flags | O_CLOEXEC)) > 0) close(fd), opened++;
    snprintf(text, sizeof text, "open, after it was open %d times:", opened);
    if (fd < 0) blocked(text);
}
static void read_until_closed(char **a) {
    until_closed(a[0], O_RDONLY);
    spill(must(open(a[0], O_RDONLY), "open"), "stayed open");
}
static void write_until_closed(char **a) {
    until_closed(a[0], O_WRONLY);
    escaped("stayed open for writing");
}

static void scribble(int fd) {
    must(write(fd, "pwned\n", 6), "write");
    escaped("wrote");
}
static void write_path(char **a) { scribble(must(open(a[0], O_WRONLY | O_APPEND | O_CLOEXEC), "open")); }
static void create(char **a) { scribble(must(open(a[0], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644), "create")); }
static void overwrite(char **a) { scribble(must(open(a[0], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644), "creat")); }

static void read_how(char **a) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
    spill(must(syscall(SYS_openat2, AT_FDCWD, a[0], &how, sizeof how), "openat2"), "read by openat2");
}
static void open_trunc(char **a) {
    must(open(a[0], O_RDONLY | O_TRUNC | O_CLOEXEC), "open O_RDONLY|O_TRUNC");
    escaped("truncated while opening for reading");
}
static void trunc_path(char **a) {
    must(truncate(a[0], 1), "truncate");
    escaped("truncated");
}
static void make_dir(char **a) {
    must(mkdir(a[0], 0755), "mkdir");
    escaped("made a directory");
}
static void remove_dir(char **a) {
    must(rmdir(a[0]), "rmdir");
    escaped("removed a directory");
}
static void remove_file(char **a) {
    must(unlink(a[0]), "unlink");
    escaped("removed a file");
}
static void make_fifo(char **a) {
    must(mkfifo(a[0], 0644), "mkfifo");
    escaped("made a fifo");
}
static void make_socket(char **a) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = need(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    strncpy(to.sun_path, a[0], sizeof to.sun_path - 1);
    must(bind(fd, (void *)&to, sizeof to), "bind");
    escaped("made a socket");
}
static void make_symlink(char **a) {
    must(symlink(a[0], a[1]), "symlink");
    escaped("made a symlink");
}
static void change_dir(char **a) {
    must(chdir(a[0]), "chdir");
    escaped("changed directory");
}
static void list(char **a) {
    DIR *dir = opendir(a[0]);
    if (!dir) blocked("opendir");
    for (struct dirent *e; (e = readdir(dir));)
        if (*e->d_name != '.') escaped("listed %s", e->d_name);
    blocked("empty directory");
}

static void hold(char **a) {
    held = must(open(a[0], O_PATH | O_CLOEXEC), "open O_PATH");
    escaped("held");
}
static void read_held(char **a) { spill(must(openat(held, a[0], O_RDONLY), "openat"), "read from a held directory"); }
static void create_held(char **a) { scribble(must(openat(held, a[0], O_WRONLY | O_CREAT, 0644), "openat O_CREAT")); }
static void reopen(char **a) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", held);
    if (!strcmp(a[0], "read")) spill(must(open(path, O_RDONLY), "reopen"), "reopened");
    scribble(must(open(path, O_WRONLY | O_APPEND), "reopen"));
}
static void enter_held(char **a) {
    (void)a;
    must(fchdir(held), "fchdir");
    escaped("entered");
}

static void hard_link(char **a) {
    must(link(a[0], a[1]), "link");
    escaped("linked");
}
static void hard_link_fd(char **a) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%ld", must(open(a[0], O_PATH | O_CLOEXEC), "open O_PATH"));
    must(linkat(AT_FDCWD, path, AT_FDCWD, a[1], AT_SYMLINK_FOLLOW), "linkat");
    escaped("linked through /proc/self/fd");
}
static void hard_link_empty(char **a) {
    int fd = must(open(a[0], O_PATH | O_CLOEXEC), "open O_PATH");
    must(linkat(fd, "", AT_FDCWD, a[1], AT_EMPTY_PATH), "linkat AT_EMPTY_PATH");
    escaped("linked by descriptor");
}
static void tmp_file(char **a) {
    must(open(a[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), "open O_TMPFILE");
    escaped("made an unnamed file");
}

static void move(char **a) {
    must(rename(a[0], a[1]), "rename");
    escaped("renamed");
}
static void swap(char **a) {
    must(syscall(SYS_renameat2, AT_FDCWD, a[0], AT_FDCWD, a[1], 2 /* RENAME_EXCHANGE */), "renameat2 exchange");
    escaped("exchanged");
}

/* One thread flips a name between a harmless file and a symlink to the target, the other keeps opening it. */
struct flip {
    char *name, *good, *bad;
    volatile int stop, turns;
};
static void *flipper(void *arg) {
    struct flip *f = arg;
    char link_name[4096];
    snprintf(link_name, sizeof link_name, "%s.next", f->name);
    for (; !f->stop; f->turns++) {
        unlink(link_name);
        if (symlink(f->turns % 2 ? f->bad : f->good, link_name) == 0) rename(link_name, f->name);
    }
    return NULL;
}
static void race(char **a) {
    struct flip f = {.name = a[0], .good = a[1], .bad = a[2]};
    char text[64];
    pthread_t thread;
    errno = pthread_create(&thread, NULL, flipper, &f);
    if (errno) broken("thread");
    for (int before = 0, i = 0; i < 1000; i += f.turns != before, before = f.turns) {
        int fd = open(f.name, O_RDONLY | O_CLOEXEC);
        long got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0) close(fd);
        if (got <= 0 || !strstr((text[got] = 0, text), "SECRET")) continue;
        f.stop = 1;
        escaped("won the race: %s", text);
    }
    f.stop = 1;
    errno = EACCES;
    blocked("never won the race");
}

const struct step file_steps[] = {
    {"read", 1, read_path},
    {"read-how", 1, read_how},
    {"read-until-closed", 1, read_until_closed},
    {"write-until-closed", 1, write_until_closed},
    {"write", 1, write_path},
    {"create", 1, create},
    {"overwrite", 1, overwrite},
    {"open-trunc", 1, open_trunc},
    {"truncate", 1, trunc_path},
    {"mkdir", 1, make_dir},
    {"rmdir", 1, remove_dir},
    {"unlink", 1, remove_file},
    {"mkfifo", 1, make_fifo},
    {"mksock", 1, make_socket},
    {"symlink", 2, make_symlink},
    {"chdir", 1, change_dir},
    {"list", 1, list},
    {"hold", 1, hold},
    {"read-held", 1, read_held},
    {"create-held", 1, create_held},
    {"reopen-held", 1, reopen},
    {"enter-held", 0, enter_held},
    {"link", 2, hard_link},
    {"link-fd", 2, hard_link_fd},
    {"link-empty", 2, hard_link_empty},
    {"tmpfile", 1, tmp_file},
    {"rename", 2, move},
    {"exchange", 2, swap},
    {"race", 3, race},
    {0},
};
