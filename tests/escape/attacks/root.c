/*
 * What only root can do, tried by a child of a nono that root started: it keeps uid 0 but must have no power.
 * Nothing here changes the machine: the calls are made with arguments that fail after the permission check.
 */
#include "attack.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/io.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>

/* A refusal is EPERM or EACCES (or ENOSYS from a filter); anything else means that the call got through. */
_Noreturn static void judge(long result, const char *call) {
    if (result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) blocked(call);
    escaped("%s got past the permission check", call);
}

static void open_path(char **a) {
    int flags = !strcmp(a[0], "write") ? O_WRONLY : O_RDONLY;
    must(open(a[1], flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), "open");
    escaped("opened %s to %s", a[1], a[0]);
}
static void node(char **a) {
    must(mknod(a[0], S_IFBLK | 0600, makedev(254, 0)), "mknod");
    escaped("made a block device");
}
static void call(char **a) {
    struct timex bad_clock = {.modes = ADJ_TICK, .tick = 1};
    char name[256] = "";
    gethostname(name, sizeof name);
    const char *c = a[0];
    if (!strcmp(c, "kexec")) judge(syscall(SYS_kexec_load, 0, 1l << 40, NULL, ~0ul), c);
    if (!strcmp(c, "init-module")) judge(syscall(SYS_finit_module, -1, "", ~0), c);
    if (!strcmp(c, "reboot")) judge(syscall(SYS_reboot, 0, 0, 0, NULL), c);
    if (!strcmp(c, "swapon")) judge(swapon("/nonexistent-swap", 0), c);
    if (!strcmp(c, "acct")) judge(acct("/nonexistent-accounting"), c);
    if (!strcmp(c, "hostname")) judge(sethostname(name, strlen(name)), c);
    if (!strcmp(c, "clock")) judge(adjtimex(&bad_clock), c);
    if (!strcmp(c, "setgroups")) judge(syscall(SYS_setgroups, 0, NULL), c);
    if (!strcmp(c, "kernel-log")) judge(klogctl(3 /* read all */, name, sizeof name), c);
    if (!strcmp(c, "bpf-prog")) judge(syscall(SYS_bpf, 11 /* GET_NEXT_ID */, (char[128]){0}, 128), c);
#ifdef __x86_64__
    if (!strcmp(c, "iopl")) judge(iopl(3), c);
#endif
    errno = ENOSYS;
    blocked("no such call on this machine");
}
/* A file system that does not exist, a mount point that is none. */
static void mount_any(char **a) { judge(mount("none", a[0], "nono-escape-absent", 0, NULL), "mount"); }
static void umount_any(char **a) { judge(umount2(a[0], 0), "umount2"); }

/* Deletes a route that does not exist: ESRCH for those who may, EPERM for those who may not. */
static void route(char **a) {
    struct {
        struct nlmsghdr head;
        struct rtmsg body;
        struct rtattr to;
        unsigned char address[4];
    } ask = {.head = {sizeof ask, RTM_DELROUTE, NLM_F_REQUEST | NLM_F_ACK, 1, 0},
             .body = {.rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = 100},
             .to = {8, RTA_DST},
             .address = {192, 0, 2, 1}};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    (void)a;
    int fd = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "socket");
    must(send(fd, &ask, sizeof ask, 0), "send");
    must(recv(fd, &answer, sizeof answer, 0), "recv");
    errno = -answer.error.error;
    judge(errno ? -1 : 0, "route change");
}

const struct step root_steps[] = {
    {"open", 2, open_path},
    {"mknod", 1, node},
    {"call", 1, call},
    {"route", 0, route},
    {"mount-any", 1, mount_any},
    {"umount-any", 1, umount_any},
    {0},
};
