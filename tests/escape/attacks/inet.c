/* The network: reaching a listener of the host by every kind of socket, and using the own loopback. */
#include "attack.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
static socklen_t local(union address *to, int family, int port) {
    memset(to, 0, sizeof *to);
    to->any.sa_family = family;
    if (family == AF_INET6) {
        to->v6.sin6_port = htons(port), to->v6.sin6_addr = in6addr_loopback;
        return sizeof to->v6;
    }
    to->v4.sin_port = htons(port), to->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof to->v4;
}
static int family_of(const char *word) { return strchr(word, '6') ? AF_INET6 : AF_INET; }

static void dial(int fd, int family, int port, const char *what) {
    union address to;
    socklen_t size = local(&to, family, port);
    must(connect(fd, &to.any, size), "connect");
    escaped("connected by %s", what);
}
static void tcp(char **a) {
    int family = family_of(a[0]);
    dial(must(socket(family, SOCK_STREAM, 0), "socket"), family, atoi(a[1]), a[0]);
}
static void mptcp(char **a) {
    int fd = must(socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */), "socket MPTCP");
    dial(fd, AF_INET, atoi(a[0]), "MPTCP");
}
/* The kernel sees an `int` family and type: bits above 32 are for filters that compare too much. */
static void wide_tcp(char **a) {
    int fd = must(syscall(SYS_socket, 1l << 32 | AF_INET, 1l << 33 | SOCK_STREAM, 1l << 34), "socket");
    dial(fd, AF_INET, atoi(a[0]), "a wide family");
}
static void fast_open(char **a) {
    union address to;
    socklen_t size = local(&to, AF_INET, atoi(a[0]));
    int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(sendto(fd, "x", 1, MSG_FASTOPEN, &to.any, size), "sendto MSG_FASTOPEN");
    escaped("sent by fast open");
}
static void fast_open_connect(char **a) {
    int one = 1, fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    need(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one), "TCP_FASTOPEN_CONNECT");
    union address to;
    socklen_t size = local(&to, AF_INET, atoi(a[0]));
    must(connect(fd, &to.any, size), "connect");
    must(send(fd, "x", 1, MSG_NOSIGNAL), "send");
    struct pollfd wait = {fd, POLLOUT, 0};
    poll(&wait, 1, 1000);
    must(wait.revents & (POLLERR | POLLHUP) ? -1 : 0, "deferred connect");
    escaped("connected late");
}
/* A datagram may vanish without an error: the listener outside decides. */
static void udp(char **a) {
    int family = family_of(a[0]), fd = must(socket(family, SOCK_DGRAM, 0), "socket");
    union address to;
    socklen_t size = local(&to, family, atoi(a[2]));
    struct iovec part = {"pwned", 5};
    struct mmsghdr many = {.msg_hdr = {.msg_name = &to, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1}};
    if (!strcmp(a[1], "connect")) must(connect(fd, &to.any, size), "connect"), must(send(fd, "pwned", 5, 0), "send");
    else if (!strcmp(a[1], "mmsg")) must(sendmmsg(fd, &many, 1, 0), "sendmmsg");
    else if (!strcmp(a[1], "msg")) must(sendmsg(fd, &many.msg_hdr, 0), "sendmsg");
    else must(sendto(fd, "pwned", 5, 0, &to.any, size), "sendto");
    tried("sent a datagram");
}
/* Serves on a port of the host's loopback until stdin ends; somebody outside must not get in. */
static void serve(char **a) {
    union address at;
    socklen_t size = local(&at, AF_INET, 0);
    int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    if (strcmp(a[0], "unbound")) must(bind(fd, &at.any, size), "bind");
    must(listen(fd, 1), "listen");
    need(getsockname(fd, &at.any, &size), "getsockname");
    printf("PORT %d\n", ntohs(at.v4.sin_port));
    while (getchar() != EOF) {
    }
    tried("served");
}

static void own_tcp(char **a) {
    union address at;
    char got[3] = "";
    int family = family_of(a[0]), door = must(socket(family, SOCK_STREAM, 0), "socket");
    socklen_t size = local(&at, family, 0);
    must(bind(door, &at.any, size), "bind");
    must(listen(door, 1), "listen");
    must(getsockname(door, &at.any, &size), "getsockname");
    if (need(fork(), "fork") == 0) {
        int fd = socket(family, SOCK_STREAM, 0);
        _exit(connect(fd, &at.any, size) == 0 && write(fd, "hi", 2) == 2 ? 0 : 1);
    }
    struct pollfd wait = {door, POLLIN, 0};
    if (poll(&wait, 1, 5000) != 1) blocked("nobody connected");
    must(read(must(accept(door, NULL, NULL), "accept"), got, 2), "read");
    worked("own loopback");
}
static void own_udp(char **a) {
    union address at;
    char got[3] = "";
    int family = family_of(a[0]);
    int in = must(socket(family, SOCK_DGRAM, 0), "socket"), out = must(socket(family, SOCK_DGRAM, 0), "socket");
    socklen_t size = local(&at, family, 0);
    must(bind(in, &at.any, size), "bind");
    must(getsockname(in, &at.any, &size), "getsockname");
    must(sendto(out, "hi", 2, 0, &at.any, size), "sendto");
    must(recv(in, got, 2, MSG_DONTWAIT), "recv");
    worked("own loopback");
}

const struct step inet_steps[] = {
    {"tcp", 2, tcp},
    {"mptcp", 1, mptcp},
    {"wide-tcp", 1, wide_tcp},
    {"fast-open", 1, fast_open},
    {"fast-open-connect", 1, fast_open_connect},
    {"udp", 3, udp},
    {"serve", 1, serve},
    {"own-tcp", 1, own_tcp},
    {"own-udp", 1, own_udp},
    {0},
};
