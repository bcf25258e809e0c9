/* Requests on the request socket, written by hand. */
#include "attack.h"
#include <sys/socket.h>
#include <sys/un.h>

static int dial(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NONO_REQUEST_SOCK");
    errno = ENOENT;
    if (!path) broken("there is no channel");
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = need(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket");
    must(connect(fd, (void *)&to, sizeof to), "connect");
    return fd;
}

/* Returns the descriptor of the answer, or -1; the answer is printed. */
static int converse(const char *id, const char *access, const char *path) {
    char packet[8192], control[CMSG_SPACE(8 * sizeof(int))];
    int length = snprintf(packet + 4, sizeof packet - 4,
                          "{\"version\":1,\"type\":\"capability_request\",\"id\":\"%s\",\"path\":\"%s\",\"access\":\"%s\"}", id,
                          path, access);
    memcpy(packet, &(uint32_t){(uint32_t)length}, 4);
    int fd = dial(), got = -1, descriptors = 0;
    /* A client that is refused before it has sent anything can still read why. */
    (void)!send(fd, packet, (size_t)length + 4, MSG_NOSIGNAL);
    struct iovec part = {packet, sizeof packet - 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    long n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    /* A server that refuses without reading the request resets the connection; its message is behind that. */
    if (n < 0 && errno == ECONNRESET) n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    must(n, "recvmsg");
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        memcpy(&got, CMSG_DATA(c), sizeof got);
        descriptors += (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof got);
    }
    packet[n < 4 ? 4 : n] = 0;
    printf("ANSWER: %d descriptors: %s\n", descriptors, packet + 4);
    close(fd);
    return got;
}

static void ask_words(char **a) {
    int fd = converse(a[0], a[1], a[2]);
    errno = EACCES;
    if (fd < 0) blocked("a request in words");
    printf("ACCESS: %d\n", fcntl(fd, F_GETFL) & O_ACCMODE);
    spill(fd, "given");
}

/* What was given for reading is used for more. */
static void raise_words(char **a) {
    char path[64];
    int fd = need(converse(a[0], "read", a[1]), "a request in words");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, "x", 1) == 1 || ftruncate(fd, 0) == 0) escaped("wrote");
    if (open(path, O_WRONLY) >= 0 || open(path, O_RDWR) >= 0 || open(path, O_RDONLY | O_TRUNC) >= 0) escaped("opened again");
    if (open(a[1], O_RDONLY | O_TRUNC) >= 0) escaped("cut it");
    blocked("more than was given");
}

/* Says where the channel is, and waits. */
static void show_channel(char **a) {
    (void)a;
    printf("CHANNEL %s\n", getenv("NONO_REQUEST_SOCK"));
    wait_for_line();
    worked("shown");
}

const struct step words_steps[] = {
    {"ask-words", 3, ask_words}, {"raise-words", 2, raise_words}, {"show-channel", 0, show_channel}, {0}};
