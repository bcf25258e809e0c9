/* Against a supervisor that opens things on the child's behalf: arguments that change while they are judged,
 * descriptors that are worth more than they were given for, and calls that take the supervisor's time, memory or
 * descriptors. */
#include "attack.h"
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { CHANGES = 1000000, ENOUGH = 200 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static ino_t inode_of(int fd) {
    struct stat s;
    need(fstat(fd, &s), "fstat");
    return s.st_ino;
}

/* One race: a thread changes what `attempt` has pointed the kernel at, and `judge` checks the result. */
struct race {
    void (*change)(struct race *, unsigned long);
    int (*attempt)(struct race *);
    int (*is_loot)(struct race *, int fd);
    char words[2][256];
    char memory[256];
    struct open_how how;
    int dirs[2], number;
    ino_t good;
    atomic_ulong changes;
    atomic_int over;
};

static void *changer(void *of) {
    struct race *race = of;
    while (!atomic_load_explicit(&race->over, memory_order_relaxed)) {
        race->change(race, atomic_fetch_add_explicit(&race->changes, 1, memory_order_relaxed));
    }
    return NULL;
}

/* Until there were enough changes, and enough attempts ended either way, which takes seconds, and longer beside other work;
 * the last no is the verdict. */
_Noreturn static void run_race(struct race *race) {
    pthread_t thread;
    unsigned long got = 0, refused = 0;
    int last = EACCES;
    char line[128];
    need(-pthread_create(&thread, NULL, changer, race), "pthread_create");
    for (double end = now() + 60; now() < end;) {
        int fd = race->attempt(race);
        if (fd < 0) {
            last = errno, refused++;
        } else {
            if (race->is_loot(race, fd)) spill(fd, "won the race");
            close(fd), got++;
        }
        if (race->changes >= CHANGES && got >= ENOUGH && refused >= ENOUGH) break;
    }
    race->over = 1;
    pthread_join(thread, NULL);
    printf("RACED: %lu changes, %lu opened, %lu refused\n", (unsigned long)race->changes, got, refused);
    errno = ETIME;
    if (race->changes < CHANGES || got < ENOUGH || refused < ENOUGH) broken("too little of a race");
    errno = last;
    snprintf(line, sizeof line, "open, in %lu attempts,", got + refused);
    blocked(line);
}

static int other_inode(struct race *race, int fd) { return inode_of(fd) != race->good; }
static int is_writable(struct race *race, int fd) {
    (void)race;
    return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

static void learn_good(struct race *race, int fd) {
    race->good = inode_of((int)need(fd, "open of what is approved"));
    close(fd);
}

/* As a rewriting thread does it: byte by byte, so that a path may be read half changed, too. */
static void change_words(struct race *race, unsigned long turn) {
    const char *to = race->words[turn & 1];
    for (size_t at = 0; at < strlen(to); at++) ((volatile char *)race->memory)[at] = to[at];
}
static int open_words(struct race *race) { return open(race->memory, O_RDONLY | O_CLOEXEC); }
static int open_words_2(struct race *race) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
    return (int)syscall(SYS_openat2, AT_FDCWD, race->memory, &how, sizeof how);
}
static void set_words(struct race *race, char **a) {
    for (int i = 0; i < 2; i++) snprintf(race->words[i], sizeof race->words[i], "%s", a[i]);
    snprintf(race->memory, sizeof race->memory, "%s", a[0]);
    errno = EINVAL;
    if (strlen(a[0]) != strlen(a[1])) broken("paths of one length are needed");
}
/* race-path APPROVED OTHER: two paths of one length. */
static void race_path(char **a) {
    static struct race race = {.change = change_words, .attempt = open_words, .is_loot = other_inode};
    set_words(&race, a);
    learn_good(&race, open(a[0], O_RDONLY));
    run_race(&race);
}
static void race_path_2(char **a) {
    static struct race race = {.change = change_words, .attempt = open_words_2, .is_loot = other_inode};
    set_words(&race, a);
    learn_good(&race, open(a[0], O_RDONLY));
    run_race(&race);
}

static void change_how(struct race *race, unsigned long turn) {
    ((volatile struct open_how *)&race->how)->flags = (turn & 1) ? O_RDONLY | O_CLOEXEC : O_RDWR | O_CLOEXEC;
}
static int open_how(struct race *race) {
    return (int)syscall(SYS_openat2, AT_FDCWD, race->memory, &race->how, sizeof race->how);
}
/* race-how PATH, which is approved for reading */
static void race_how(char **a) {
    static struct race race = {.change = change_how, .attempt = open_how, .is_loot = is_writable};
    snprintf(race.memory, sizeof race.memory, "%s", a[0]);
    learn_good(&race, open(a[0], O_RDONLY));
    run_race(&race);
}

static void change_cwd(struct race *race, unsigned long turn) { (void)!chdir(race->words[turn & 1]); }
/* race-cwd DIR OTHER NAME: a thread goes back and forth, while NAME is opened. */
static void race_cwd(char **a) {
    static struct race race = {.change = change_cwd, .attempt = open_words, .is_loot = other_inode};
    for (int i = 0; i < 2; i++) snprintf(race.words[i], sizeof race.words[i], "%s", a[i]);
    snprintf(race.memory, sizeof race.memory, "%s", a[2]);
    need(chdir(a[0]), "chdir");
    learn_good(&race, open(a[2], O_RDONLY));
    run_race(&race);
}

static void change_dir(struct race *race, unsigned long turn) { dup2(race->dirs[turn & 1], race->number); }
static int open_at(struct race *race) { return openat(race->number, race->memory, O_RDONLY | O_CLOEXEC); }
static int open_beneath(struct race *race) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, race->number, race->memory, &how, sizeof how);
}
static void prepare_dirs(struct race *race, char **a) {
    for (int i = 0; i < 2; i++) race->dirs[i] = need(open(a[i], O_PATH | O_CLOEXEC), "open O_PATH");
    snprintf(race->memory, sizeof race->memory, "%s", a[2]);
    race->number = need(dup(race->dirs[0]), "dup");
    learn_good(race, openat(race->dirs[0], a[2], O_RDONLY));
}
/* race-dirfd DIR OTHER NAME */
static void race_dirfd(char **a) {
    static struct race race = {.change = change_dir, .attempt = open_at, .is_loot = other_inode};
    prepare_dirs(&race, a);
    run_race(&race);
}
static void race_beneath(char **a) {
    static struct race race = {.change = change_dir, .attempt = open_beneath, .is_loot = other_inode};
    prepare_dirs(&race, a);
    run_race(&race);
}

/* What is approved for reading is no more than that, whatever is done with the descriptor. (Access mode 3 is left out: it
 * can be had, by Landlock's rules, but neither reads nor writes.) */
static void raise_rights(char **a) {
    static const int more[] = {O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND, O_WRONLY | O_CREAT};
    char reopened[64], text[64];
    int fd = need(open(a[0], O_RDONLY | O_CLOEXEC), "open of what is approved");
    int path = open(a[0], O_PATH | O_CLOEXEC);
    need(pread(fd, text, sizeof text, 0), "read");
    snprintf(reopened, sizeof reopened, a[1], fd);
    if (!strcmp(a[1], "write")) {
        if (write(fd, "x", 1) == 1) escaped("wrote to it");
        if (ftruncate(fd, 1) == 0) escaped("cut it");
        if (fallocate(fd, 0, 0, 1 << 20) == 0) escaped("made it grow");
        if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) escaped("mapped it");
        if (truncate(a[0], 1) == 0) escaped("cut it by name");
        if (fchmod(fd, 0777) == 0) escaped("changed its mode");
        blocked("writing");
    }
    if (!strcmp(a[1], "path")) snprintf(reopened, sizeof reopened, "/proc/self/fd/%d", (int)need(path, "open O_PATH"));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (open(reopened, more[i], 0666) >= 0) escaped("opened again with %#x", (unsigned)more[i]);
    blocked("opening again");
}
/* The control of `raise-rights … write`: a descriptor for writing can do all that. */
static void write_rights(char **a) {
    int fd = must(open(a[0], O_RDWR | O_CLOEXEC), "open");
    need(pwrite(fd, "x", 1, 0), "write");
    escaped("wrote to it");
}

/* No descriptor is free: that is the error, and afterwards the answer is as before. */
static void exhausted(char **a) {
    struct rlimit few = {64, 64};
    int first = need(open(a[0], O_RDONLY), "open of what is approved"), last = first;
    need(setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
    for (int fd; (fd = dup(first)) >= 0;) last = fd;
    for (int i = 0; i < 100; i++) {
        if (open(a[0], O_RDONLY) >= 0) escaped("a descriptor beyond the limit");
        if (errno != EMFILE) blocked("open without a free descriptor");
        if (open(a[1], O_RDONLY) >= 0) escaped("a descriptor beyond the limit");
    }
    close(last);
    must(open(a[0], O_RDONLY), "open with a free descriptor");
    worked("EMFILE, and nothing else");
}

static atomic_ulong alarms;
static void count_alarm(int signal) { (void)signal, alarms++; }
/* A signal every 100 us, while the open waits: MS milliseconds at least, said on stdin's end. */
static void storm(char **a) {
    struct sigaction action = {.sa_handler = count_alarm};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    int fd;
    if (!strcmp(a[1], "restart")) action.sa_flags = SA_RESTART;
    need(sigaction(SIGALRM, &action, NULL), "sigaction");
    need(setitimer(ITIMER_REAL, &often, NULL), "setitimer");
    while ((fd = open(a[0], O_RDONLY)) < 0 && errno == EINTR) {
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("ALARMS: %lu\n", (unsigned long)alarms);
    must(fd, "open");
    worked("opened in a storm");
}

/* A child asks and is killed; the parent goes on with the next step. */
static void ask_and_die(char **a) {
    int ready[2];
    char c;
    need(pipe(ready), "pipe");
    pid_t child = need(fork(), "fork");
    if (!child) {
        need(write(ready[1], ".", 1), "write");
        (void)!open(a[0], O_RDONLY);
        _exit(0);
    }
    need(read(ready[0], &c, 1), "read");
    printf("ASKING\n");
    wait_for_line();
    need(kill(child, SIGKILL), "kill");
    need(waitpid(child, NULL, 0), "waitpid");
    printf("DEAD\n");
    worked("its child is gone");
}

/* COUNT processes, one after another and some at once, each with its own question. */
static void crowd(char **a) {
    int count = atoi(a[1]), refused = 0, status;
    for (int i = 0; i < count; i++) {
        pid_t child = need(fork(), "fork");
        if (!child) _exit(open(a[0], O_RDONLY) < 0 ? 1 : 0);
        if (i >= 50) need(wait(&status), "wait"), refused += status != 0;
    }
    while (wait(&status) > 0) refused += status != 0;
    printf("CROWD: %d of %d refused\n", refused, count);
    errno = EACCES;
    if (refused == count) blocked("open");
    escaped("%d got in", count - refused);
}

/* While one waits for an answer, its threads, its children and others go on. */
static void *ask(void *path) { return (void *)(long)open(path, O_RDONLY); }
static void goes_on(char **a) {
    pthread_t waiting;
    int status, tries = atoi(a[2]);
    need(-pthread_create(&waiting, NULL, ask, a[0]), "pthread_create");
    printf("WAITING\n");
    wait_for_line();
    for (int i = 0; i < tries; i++) close(need(open(a[1], O_RDONLY), "open of what is granted"));
    pid_t child = need(fork(), "fork");
    if (!child) _exit(open(a[1], O_RDONLY) < 0);
    need(waitpid(child, &status, 0), "waitpid");
    if (status) broken("a child could not go on");
    printf("WENT ON\n");
    void *fd;
    pthread_join(waiting, &fd);
    if ((long)fd < 0) blocked("open of what was asked");
    worked("answered in the end");
}

/* Opens and reports it in a file that is granted: a process killed before an answer has reported nothing. */
static void open_and_tell(char **a) {
    printf("OPENING\n");
    int fd = open(a[0], O_RDONLY), told = open(a[1], O_WRONLY | O_CREAT, 0644);
    dprintf(told, fd < 0 ? "refused\n" : "opened\n");
    must(fd, "open");
    escaped("opened");
}

/* One process opens what is granted, as often as it can; then again, while threads of another are refused. */
static unsigned long opens_in(const char *path, double seconds) {
    unsigned long count = 0;
    for (double end = now() + seconds; now() < end; count++) close(need(open(path, O_RDONLY), "open of what is granted"));
    return count;
}
static const char *refused_path;
static void *be_refused(void *unused) {
    for (;;)
        if (open(refused_path, O_RDONLY) >= 0) escaped("got in");
    return unused;
}
/* flood GRANTED REFUSED THREADS SECONDS */
static void flood(char **a) {
    double seconds = atof(a[3]);
    unsigned long alone = 0, beside = 0;
    refused_path = a[1];
    if (open(a[1], O_RDONLY) >= 0) escaped("got in");
    for (int round = 0; round < 6; round++) {
        alone += opens_in(a[0], seconds);
        pid_t child = need(fork(), "fork");
        if (!child) {
            pthread_t thread;
            for (int i = 0; i < atoi(a[2]); i++) need(-pthread_create(&thread, NULL, be_refused, NULL), "pthread_create");
            pthread_join(thread, NULL);
        }
        /* Until the flood has begun, nothing is measured. */
        opens_in(a[0], seconds / 4);
        beside += opens_in(a[0], seconds);
        need(kill(child, SIGKILL), "kill");
        need(waitpid(child, NULL, 0), "waitpid");
    }
    printf("FLOOD: %lu alone, %lu beside, percent: %lu\n", alone, beside, beside * 100 / (alone ? alone : 1));
    printf("WAITING\n");
    wait_for_line();
    worked("others went on");
}

/* Threads that wait, each for an answer of its own (`%d` in the path) or all for one. */
static void *ask_numbered(void *path) {
    (void)!open(path, O_RDONLY);
    return NULL;
}
static void many_questions(char **a) {
    int count = atoi(a[1]);
    pthread_t *threads = calloc(count, sizeof *threads);
    for (int i = 0; i < count; i++) {
        char *path = malloc(512);
        snprintf(path, 512, a[0], i);
        need(-pthread_create(&threads[i], NULL, ask_numbered, path), "pthread_create");
    }
    printf("WAITING\n");
    wait_for_line();
    /* As long as they wait, there is no room for one more. */
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    int fd = open(a[2], O_RDONLY);
    must(fd, "open of what is approved");
    worked("approved");
}

/* One asks for PATH; when it was told to, another program does so, too. */
static const char *told(long fd) { return fd < 0 ? "refused" : "opened"; }
static void ask_beside(char **a) {
    pthread_t first;
    int go[2];
    char c;
    void *fd;
    need(pipe(go), "pipe");
    pid_t second = need(fork(), "fork");
    if (!second) {
        need(read(go[0], &c, 1), "read");
        need(execl(a[0], a[0], "ask-second", a[1], NULL), "execl");
    }
    need(-pthread_create(&first, NULL, ask, a[1]), "pthread_create");
    wait_for_line();
    need(write(go[1], ".", 1), "write");
    pthread_join(first, &fd);
    printf("FIRST: %s\n", told((long)fd));
    need(waitpid(second, NULL, 0), "waitpid");
    worked("both were answered");
}
static void ask_second(char **a) {
    printf("BESIDE\n");
    printf("SECOND: %s\n", told(open(a[0], O_RDONLY)));
    worked("answered");
}

static void own_listener(char **a) {
    (void)a;
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, all};
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program), "seccomp");
    escaped("has a listener of its own");
}

static void run_program(char **a) {
    execv(a[0], a);
    blocked("execv");
}

const struct step asking_steps[] = {
    {"race-path", 2, race_path},       {"race-path-2", 2, race_path_2},   {"race-how", 1, race_how},
    {"race-cwd", 3, race_cwd},         {"race-dirfd", 3, race_dirfd},     {"race-beneath", 3, race_beneath},
    {"raise-rights", 2, raise_rights}, {"write-rights", 1, write_rights}, {"exhausted", 2, exhausted},
    {"storm", 2, storm},               {"ask-and-die", 1, ask_and_die},   {"crowd", 2, crowd},
    {"goes-on", 3, goes_on},           {"open-and-tell", 2, open_and_tell}, {"flood", 4, flood},
    {"many-questions", 3, many_questions}, {"ask-beside", 2, ask_beside}, {"ask-second", 1, ask_second},
    {"own-listener", 0, own_listener}, {"run-program", WRAPS, run_program}, {0},
};
