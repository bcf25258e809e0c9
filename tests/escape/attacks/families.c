/* Socket families beyond the internet: those that a network namespace does not hold back, and the host's interfaces. */
#include "attack.h"
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/socket.h>

static int family_of(const char *word) {
    static const struct {
        const char *name;
        int family;
    } known[] = {{"vsock", AF_VSOCK}, {"packet", AF_PACKET}, {"inet", AF_INET}, {"inet6", AF_INET6}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, word)) return known[i].family;
    broken("unknown family");
}
static void plain(char **a) {
    must(socket(family_of(a[0]), socket_type(a[1]), a[2] ? atoi(a[2]) : 0), "socket");
    escaped("made a %s socket", a[0]);
}
static void wide(char **a) {
    must(syscall(SYS_socket, 1l << 32 | family_of(a[0]), 1l << 35 | socket_type(a[1]), 0), "socket");
    escaped("made a %s socket by a wide family", a[0]);
}
/* Every family but those that programs need: any that opens is unexpected. */
static void sweep(char **a) {
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
    (void)a;
    for (int family = 1; family < 64; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) continue;
        for (int t = 0; t < 4; t++)
            if (socket(family, types[t], 0) >= 0) escaped("family %d type %d opens", family, types[t]);
    }
    errno = EAFNOSUPPORT;
    blocked("no other family");
}
static void uevents(char **a) {
    struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int fd = must(socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT), "socket");
    (void)a;
    must(bind(fd, (void *)&at, sizeof at), "bind");
    escaped("listens to device events of the host");
}
static void interfaces(char **a) {
    struct if_nameindex *all = if_nameindex();
    (void)a;
    if (!all) blocked("if_nameindex");
    for (struct if_nameindex *i = all; i->if_index; i++)
        if (strcmp(i->if_name, "lo")) escaped("sees interface %s", i->if_name);
    errno = ENODEV;
    blocked("only lo");
}

const struct step family_steps[] = {
    {"socket", 2, plain},
    {"wide-socket", 2, wide},
    {"family-sweep", 0, sweep},
    {"uevents", 0, uevents},
    {"interfaces", 0, interfaces},
    {0},
};
