/* What /proc gives away: other processes by name, and sweeps over every process that can be seen. */
#include "attack.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

static char *mark; /* the word that a sweep looks for */

/* It comes backwards, so that no command line on the way has it. */
static void look_for(char *backwards) {
    size_t n = strlen(backwards);
    mark = calloc(n + 1, 1);
    for (size_t i = 0; i < n; i++) mark[i] = backwards[n - 1 - i];
}

static int has_mark(const char *bytes, long length) { return length > 0 && memmem(bytes, length, mark, strlen(mark)); }

static void proc_read(char **a) {
    char path[256];
    snprintf(path, sizeof path, "/proc/%d/%s", target(a[0]), a[1]);
    spill(must(open(path, O_RDONLY), "open"), path);
}
/* The file has no seekable start worth showing: report only whether the word is in it. */
static void proc_grep(char **a) {
    static char text[1 << 17];
    char path[256];
    look_for(a[2]);
    snprintf(path, sizeof path, "/proc/%d/%s", target(a[0]), a[1]);
    long got = must(read(must(open(path, O_RDONLY), "open"), text, sizeof text), "read");
    if (has_mark(text, got)) escaped("%s has %s", path, mark);
    errno = ENOENT;
    blocked("not in there");
}

static void each_process(void (*visit)(pid_t)) {
    DIR *dir = opendir("/proc");
    if (!dir) blocked("opendir /proc");
    for (struct dirent *e; (e = readdir(dir));)
        if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid()) visit(atoi(e->d_name));
    closedir(dir);
}
static void try_file(const char *path) {
    static char text[1 << 16];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return;
    long got = read(fd, text, sizeof text);
    close(fd);
    if (has_mark(text, got)) escaped("%s has %s", path, mark);
}
static char *secret_path;
static void visit_files(pid_t pid) {
    static const char *const fixed[] = {"environ", "cmdline", "cwd/secret", "task/%d/environ"};
    char path[4200];
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        int n = snprintf(path, sizeof path, "/proc/%d/", pid);
        snprintf(path + n, sizeof path - n, fixed[i], pid);
        try_file(path);
    }
    snprintf(path, sizeof path, "/proc/%d/root%s", pid, secret_path);
    try_file(path);
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        try_file(path);
    }
}
static void sweep_files(char **a) {
    look_for(a[0]);
    secret_path = a[1];
    each_process(visit_files);
    errno = ENOENT;
    blocked("no process gave it away");
}

/* Looks through the writable memory of a process. */
static void visit_memory(pid_t pid) {
    static char page[1 << 16];
    char path[64], line[512];
    unsigned long from, to;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    while (maps && mem >= 0 && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx rw", &from, &to) != 2 || to - from > 1 << 22) continue;
        for (; from < to; from += sizeof page)
            if (has_mark(page, pread(mem, page, sizeof page, from))) escaped("memory of %d has %s", pid, mark);
    }
    if (maps) fclose(maps);
    if (mem >= 0) close(mem);
}
static void sweep_memory(char **a) {
    look_for(a[0]);
    each_process(visit_memory);
    errno = ENOENT;
    blocked("no memory could be read");
}

static void visit_trace(pid_t pid) {
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) escaped("seized %d", pid);
}
static void sweep_trace(char **a) {
    (void)a;
    errno = ESRCH;
    each_process(visit_trace);
    blocked("no process could be traced");
}
static void visit_descriptors(pid_t pid) {
    int pidfd = syscall(SYS_pidfd_open, pid, 0);
    for (int fd = 0; pidfd >= 0 && fd < 64; fd++)
        if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0) escaped("took descriptor %d of %d", fd, pid);
}
static void sweep_descriptors(char **a) {
    (void)a;
    errno = ESRCH;
    each_process(visit_descriptors);
    blocked("no process gave a descriptor");
}
static char *wanted_pid;
static void visit_name(pid_t pid) {
    if (pid == atoi(wanted_pid)) escaped("sees process %d", pid);
}
static void sees(char **a) {
    wanted_pid = a[0];
    each_process(visit_name);
    errno = ENOENT;
    blocked("not in /proc");
}

static void status_field(const char *name, char *value) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) broken("/proc/self/status");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
            sscanf(line + strlen(name) + 1, "%63s", value);
    fclose(status);
}
/* Escaped when the field is not what a confined process must show. */
static void status(char **a) {
    char value[64] = "";
    status_field(a[0], value);
    if (!*value) broken("no such field");
    if (strcmp(value, a[1])) escaped("%s is %s", a[0], value);
    errno = 0;
    blocked(a[0]);
}

/* Other sources of text that should not name anything outside: the mount table, the process environment. */
static void env_leak(char **a) {
    extern char **environ;
    look_for(a[0]);
    for (char **e = environ; *e; e++)
        if (strstr(*e, mark)) escaped("environment has %s", *e);
    try_file("/proc/self/environ");
    errno = ENOENT;
    blocked("environment is clean");
}

const struct step proc_steps[] = {
    {"proc-read", 2, proc_read},
    {"proc-grep", 3, proc_grep},
    {"sweep-files", 2, sweep_files},
    {"sweep-memory", 1, sweep_memory},
    {"sweep-trace", 0, sweep_trace},
    {"sweep-descriptors", 0, sweep_descriptors},
    {"sees", 1, sees},
    {"status", 2, status},
    {"env-leak", 1, env_leak},
    {0},
};
