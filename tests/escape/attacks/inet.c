/* The network: reaching a listener of the host by every kind of socket, and using the own loopback. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
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
static int family_of_host(const char *host) { return strchr(host, ':') ? AF_INET6 : AF_INET; }
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
static socklen_t parsed(union address *to, const char *host, int port) {
    socklen_t size = local(to, family_of_host(host), port);
    void *at = to->any.sa_family == AF_INET6 ? (void *)&to->v6.sin6_addr : (void *)&to->v4.sin_addr;
    if (inet_pton(to->any.sa_family, host, at) != 1) broken("address");
    return size;
}
/* A server on a certain address, not just on this machine. */
static void tcp_at(char **a) {
    union address to;
    socklen_t size = parsed(&to, a[0], atoi(a[1]));
    int fd = must(socket(to.any.sa_family, SOCK_STREAM, 0), "socket");
    must(connect(fd, &to.any, size), "connect");
    escaped("connected to %s", a[0]);
}
/* A thread changes the address while it is looked at; who answered is asked of the kernel. */
static union address racing, sides[2];
static volatile int raced, stop_racing;
static void *changer(void *none) {
    for (; !stop_racing; raced++) racing.v4.sin_addr = sides[raced % 2].v4.sin_addr;
    return none;
}
static void tcp_race(char **a) {
    pthread_t thread;
    socklen_t size = parsed(&sides[0], a[0], atoi(a[2]));
    parsed(&sides[1], a[1], atoi(a[2]));
    racing = sides[0];
    errno = pthread_create(&thread, NULL, changer, NULL);
    if (errno) broken("thread");
    for (int i = 0; i < 2000 || raced < 100000; i++) {
        union address peer;
        socklen_t peer_size = sizeof peer;
        int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
        if (connect(fd, &racing.any, size) == 0 && getpeername(fd, &peer.any, &peer_size) == 0 &&
            peer.v4.sin_addr.s_addr == sides[1].v4.sin_addr.s_addr)
            escaped("connected to %s after %d tries", a[1], i);
        close(fd);
    }
    errno = EACCES;
    blocked("connect, whatever the address was");
}
/* A way that packets are to take, whatever address they are for. */
static void segment_route(char **a) {
    struct {
        unsigned char head[8];
        struct in6_addr hops[2];
    } route = {{0, 4, 4 /* segment routing */, 1, 1}, {IN6ADDR_LOOPBACK_INIT}};
    int fd = must(socket(AF_INET6, SOCK_STREAM, 0), "socket");
    if (inet_pton(AF_INET6, a[0], &route.hops[1]) != 1) broken("address");
    must(setsockopt(fd, IPPROTO_IPV6, IPV6_RTHDR, &route, sizeof route), "IPV6_RTHDR");
    escaped("packets go by %s first", a[0]);
}
static void bind_device(char **a) {
    int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, a[0], strlen(a[0])), "SO_BINDTODEVICE");
    escaped("packets leave by %s", a[0]);
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
/* Serves on a port of the host's loopback (`bound`: any, `unbound`: the kernel's choice, or a number) until stdin ends;
 * a process outside must not get in. */
static void serve(char **a) {
    union address at;
    socklen_t size = local(&at, AF_INET, 0);
    int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    if (atoi(a[0])) at.v4.sin_port = htons(atoi(a[0]));
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
    if (poll(&wait, 1, 5000) != 1) blocked("no connection came");
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

/* The host's addresses, asked of the kernel by a socket of the routing family, or by any other. */
static void address_by_netlink(char **a) {
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg body;
    } ask = {{sizeof ask, RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {.ifa_family = AF_INET}};
    char answer[32768];
    in_addr_t wanted = inet_addr(a[0]);
    int fd = must(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), "socket");
    must(send(fd, &ask, sizeof ask, 0), "send");
    long got = must(recv(fd, answer, sizeof answer, 0), "recv");
    if (memmem(answer, got, &wanted, sizeof wanted)) escaped("knows the address");
    errno = ENODATA, blocked("not among the addresses");
}
static void address_by_ioctl(char **a) {
    struct ifreq list[64];
    struct ifconf ask = {.ifc_len = sizeof list, .ifc_req = list};
    in_addr_t wanted = inet_addr(a[0]);
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    must(ioctl(pair[0], SIOCGIFCONF, &ask), "SIOCGIFCONF");
    if (memmem(list, ask.ifc_len, &wanted, sizeof wanted)) escaped("knows the address");
    errno = ENODATA, blocked("not among the addresses");
}

const struct step inet_steps[] = {
    {"address-netlink", 1, address_by_netlink},
    {"address-ioctl", 1, address_by_ioctl},
    {"tcp", 2, tcp},
    {"tcp-at", 2, tcp_at},
    {"tcp-race", 3, tcp_race},
    {"segment-route", 1, segment_route},
    {"bind-device", 1, bind_device},
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
