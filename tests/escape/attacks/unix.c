/* Unix sockets: talking to servers outside by path or abstract name, by every type and detour. */
#include "attack.h"
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A name that begins with `@` is abstract. */
static socklen_t name(struct sockaddr_un *to, const char *path) {
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to->sun_path) errno = ENAMETOOLONG, broken("socket path");
    strcpy(to->sun_path, path);
    if (*path == '@') to->sun_path[0] = 0;
    return offsetof(struct sockaddr_un, sun_path) + strlen(path) + (*path != '@');
}

static void dial(char **a) {
    struct sockaddr_un to;
    socklen_t size = name(&to, a[1]);
    int fd = must(socket(AF_UNIX, socket_type(a[0]) | SOCK_CLOEXEC, 0), "socket");
    must(connect(fd, (void *)&to, size), "connect");
    must(send(fd, "pwned", 5, MSG_NOSIGNAL), "send");
    escaped("connected to %s", a[1]);
}
/* A socket that can send to any name: a pair, or a lone one; the kernel turns `raw` into datagrams. */
static int pair[2];
static int sender(const char *kind) {
    long wide = strstr(kind, "wide") ? 1l << 32 : 0, type = strstr(kind, "raw") ? SOCK_RAW : SOCK_DGRAM;
    if (!strcmp(kind, "flags")) type |= SOCK_NONBLOCK | SOCK_CLOEXEC;
    if (!strstr(kind, "pair")) return must(syscall(SYS_socket, wide | AF_UNIX, wide | type, 0), "socket");
    must(syscall(SYS_socketpair, wide | AF_UNIX, wide | type, 0, pair), "socketpair");
    return pair[0];
}
static void throw(char **a) {
    struct sockaddr_un to;
    socklen_t size = name(&to, a[2]);
    struct iovec part = {"pwned", 5};
    struct mmsghdr many = {.msg_hdr = {.msg_name = &to, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1}};
    int fd = sender(a[0]);
    must(!strcmp(a[1], "msg")    ? sendmsg(fd, &many.msg_hdr, 0)
         : !strcmp(a[1], "mmsg") ? sendmmsg(fd, &many, 1, 0)
                                 : sendto(fd, "pwned", 5, 0, (void *)&to, size),
         "send");
    /* To the other end of the pair it may always be sent. */
    struct pollfd other = {pair[1], POLLIN, 0};
    if (strstr(a[0], "pair") && poll(&other, 1, 0) == 1) errno = EISCONN, blocked("went to its own other end");
    escaped("sent a datagram to %s", a[2]);
}
/* Whether a name is taken, asked by one end of a pair. */
static void pair_name(char **a) {
    struct sockaddr_un at;
    socklen_t size = name(&at, a[0]);
    if (bind(sender("pair"), (void *)&at, size) == 0) errno = EADDRNOTAVAIL, blocked("the name is free");
    if (errno != EADDRINUSE) blocked("bind");
    escaped("%s is taken", a[0]);
}
/* The other end of a pair, turned to a server. */
static void pair_dial(char **a) {
    struct sockaddr_un to;
    socklen_t size = name(&to, a[0]);
    int fd = sender("pair");
    must(connect(fd, (void *)&to, size), "connect");
    must(send(fd, "pwned", 5, 0), "send");
    escaped("connected to %s", a[0]);
}
/* The path goes through a descriptor of the directory, so that it does not name the place. */
static void dial_fd(char **a) {
    char path[64], *args[] = {"stream", path, NULL};
    snprintf(path, sizeof path, "/proc/self/fd/%ld/%s", must(open(a[0], O_PATH), "open O_PATH"), a[1]);
    dial(args);
}
static void dial_near(char **a) {
    char *args[] = {"stream", a[1], NULL};
    must(chdir(a[0]), "chdir");
    dial(args);
}
/* A thread rewrites the address while the kernel, and the supervisor before it, read it. */
static struct sockaddr_un shared;
static volatile int stop, turns;
static char *faces[2];
static void *rewriter(void *none) {
    for (; !stop; turns++) memcpy(shared.sun_path, faces[turns % 2], strlen(faces[turns % 2]) + 1);
    return none;
}
/* A server of its own, and a thread that does `work` from now on. */
static void begin_race(char **a, void *(*work)(void *)) {
    struct sockaddr_un own;
    pthread_t thread;
    socklen_t size = name(&own, a[0]);
    int door = need(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    need(bind(door, (void *)&own, size), "bind");
    need(listen(door, 4096), "listen");
    shared = own, faces[0] = a[0], faces[1] = a[1];
    errno = pthread_create(&thread, NULL, work, NULL);
    if (errno) broken("thread");
}
/* At least 500 connections, and 10^5 changes of the address meanwhile. */
static void dial_race(char **a) {
    begin_race(a, rewriter);
    for (int before = 0, i = 0; i < 500 || turns < 100000; i += turns != before, before = turns) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fd, (void *)&shared, sizeof shared) == 0) send(fd, "pwned", 5, MSG_NOSIGNAL);
        close(fd);
    }
    stop = 1;
    tried("raced");
}
/* The descriptor is now a socket of one family, now of another, and so is the address. */
static int swapped;
static void *swapper(void *none) {
    union {
        struct sockaddr_un path;
        struct sockaddr_in inet;
    } to[2] = {{.inet = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}}};
    name(&to[1].path, faces[1]);
    for (; !stop; turns++) {
        int fresh = socket(turns % 2 ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        memcpy(&shared, &to[turns % 2], sizeof shared);
        dup2(fresh, swapped);
        close(fresh);
    }
    return none;
}
static void swap_race(char **a) {
    swapped = need(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
    begin_race(a, swapper);
    for (int before = 0, i = 0; i < 2000 || turns < 10000; i += turns != before, before = turns)
        if (connect(swapped, (void *)&shared, sizeof shared) == 0) send(swapped, "pwned", 5, MSG_NOSIGNAL);
    stop = 1;
    tried("raced");
}
/* Waits for a word from outside: what comes next happens later. */
static void pause_here(char **a) {
    char line[16];
    (void)a;
    printf("WAITING\n");
    if (!fgets(line, sizeof line, stdin)) broken("no line on stdin");
    worked("went on");
}
/* Binds and listens, and lets go of the name, not of the socket. */
static void bind_away(char **a) {
    struct sockaddr_un own;
    socklen_t size = name(&own, a[0]);
    int door = must(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    must(bind(door, (void *)&own, size), "bind");
    must(listen(door, 16), "listen");
    must(unlink(a[0]), "unlink");
    worked("bound and gone");
}
static void receive_fd(char **a) {
    struct sockaddr_un to;
    socklen_t size = name(&to, a[1]);
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int got, fd = must(socket(AF_UNIX, socket_type(a[0]), 0), "socket");
    must(connect(fd, (void *)&to, size), "connect");
    must(recvmsg(fd, &message, 0), "recvmsg");
    if (!CMSG_FIRSTHDR(&message)) blocked("no descriptor came");
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
    spill(got, "descriptor from an accomplice");
}
static void own(char **a) {
    struct sockaddr_un at;
    char got[3] = "";
    socklen_t size = name(&at, a[1]);
    int type = socket_type(a[0]), door = must(socket(AF_UNIX, type, 0), "socket");
    must(bind(door, (void *)&at, size), "bind");
    must(listen(door, 1), "listen");
    if (need(fork(), "fork") == 0) {
        int fd = socket(AF_UNIX, type, 0);
        _exit(connect(fd, (void *)&at, size) == 0 && write(fd, "hi", 2) == 2 ? 0 : 1);
    }
    struct pollfd wait = {door, POLLIN, 0};
    if (poll(&wait, 1, 5000) != 1) blocked("own child could not connect");
    must(read(must(accept(door, NULL, NULL), "accept"), got, 2), "read");
    worked("own socket");
}
static void own_pair(char **a) {
    int pair[2];
    char got[3] = "";
    must(socketpair(AF_UNIX, socket_type(a[0]), 0, pair), "socketpair");
    must(write(pair[0], "hi", 2), "write");
    must(write(pair[0], "ho", 2), "write");
    must(read(pair[1], got, 2), "read");
    if (strcmp(got, "hi")) blocked("read something else");
    worked("own pair");
}

const struct step unix_steps[] = {
    {"dial", 2, dial},
    {"throw", 3, throw},
    {"dial-fd", 2, dial_fd},
    {"dial-near", 2, dial_near},
    {"dial-race", 2, dial_race},
    {"swap-race", 2, swap_race},
    {"bind-away", 1, bind_away},
    {"pause", 0, pause_here},
    {"receive-fd", 2, receive_fd},
    {"own-unix", 2, own},
    {"own-pair", 1, own_pair},
    {"pair-name", 1, pair_name},
    {"pair-dial", 1, pair_dial},
    {0},
};
