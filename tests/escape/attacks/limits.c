/* Getting around limits: memory that is in no process, and a command that stops instead of ending. */
#include "attack.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MIB (1ul << 20)

static void fill(int fd, size_t size) {
    static char block[MIB];
    memset(block, 1, sizeof block);
    for (size_t done = 0; done < size; done += sizeof block) must(write(fd, block, sizeof block), "write");
}
static void *mapped(size_t size, int protection, int flags) {
    void *memory = mmap(NULL, size, protection, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) blocked("mmap");
    return memory;
}
/* Written and forgotten: what has no mapping is in no process's count. */
static void by_memfd(size_t size) { fill(must(memfd_create("hoard", MFD_CLOEXEC), "memfd_create"), size); }
/* Sent and never received, so that it is not even among the descriptors. */
static void by_flight(size_t size) {
    int pair[2], fd = must(memfd_create("hoard", MFD_CLOEXEC), "memfd_create");
    char control[CMSG_SPACE(sizeof fd)] = "", byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    fill(fd, size);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    need(sendmsg(pair[0], &message, 0), "sendmsg");
    close(fd);
}
/* What stays when its maker ends, to be removed by it. */
static int left[32768], lefts;
static void by_segment(size_t size) {
    for (size_t done = 0; done < size; done += 10 * MIB) {
        int segment = must(shmget(IPC_PRIVATE, 10 * MIB, IPC_CREAT | 0600), "shmget");
        char *memory = shmat(left[lefts++] = segment, NULL, 0);
        if (memory == (void *)-1) blocked("shmat");
        memset(memory, 1, 10 * MIB);
        shmdt(memory);
    }
}
static void by_file(size_t size) {
    int fd = must(shm_open("/nono-hoard", O_RDWR | O_CREAT, 0600), "shm_open");
    shm_unlink("/nono-hoard");
    fill(fd, size);
}
/* Shared pages stay when they are dropped from the only process that has them. */
static void by_dropping(size_t size) {
    char *memory = mapped(size, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (size_t at = 0; at < size; at += MIB) {
        memset(memory + at, 1, MIB);
        madvise(memory + at, MIB, MADV_DONTNEED);
    }
}
/* Reading what was never written maps one page of zeroes, and makes a page of the table for each 2 MiB. */
static void by_tables(size_t size) {
    volatile char *memory = mapped(size << 9, PROT_READ, MAP_PRIVATE | MAP_NORESERVE);
    for (size_t at = 0; at < size << 9; at += 2 * MIB) (void)memory[at];
}
/* What was sent and not read; with `orphan` by a socket that is gone. */
static void in_sockets(size_t size, int orphan) {
    static char block[4096];
    for (size_t done = 0; done < size;) {
        int pair[2];
        must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), "socketpair");
        size_t before = done;
        for (ssize_t n; (n = write(pair[0], block, orphan ? 1 : sizeof block)) > 0;) done += orphan ? 768 : n;
        if (done == before) blocked("write");
        if (orphan) close(pair[0]);
    }
}
static void by_sockets(size_t size) { in_sockets(size, 0); }
static void by_orphans(size_t size) { in_sockets(size, 1); }
static void by_queues(size_t size) {
    static struct {
        long type;
        char text[8192];
    } message = {.type = 1};
    for (size_t done = 0; done < size;) {
        int queue = left[lefts++] = must(msgget(IPC_PRIVATE, IPC_CREAT | 0600), "msgget");
        while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) done += sizeof message.text;
    }
}
static void by_heap(size_t size) { memset(mapped(size, PROT_READ | PROT_WRITE, MAP_PRIVATE), 1, size); }

/* Holds so many MiB for two seconds. */
static void hoard(char **a) {
    static const struct {
        const char *name;
        void (*take)(size_t);
    } ways[] = {{"heap", by_heap},       {"memfd", by_memfd},     {"flight", by_flight},   {"segment", by_segment},
                {"file", by_file},       {"dropped", by_dropping}, {"tables", by_tables},   {"sockets", by_sockets},
                {"orphans", by_orphans}, {"queues", by_queues}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, a[0])) {
            ways[i].take(strtoul(a[1], NULL, 10) * MIB);
            sleep(2);
            while (lefts-- > 0)
                if (ways[i].take == by_queues) msgctl(left[lefts], IPC_RMID, NULL);
                else shmctl(left[lefts], IPC_RMID, NULL);
            escaped("holds %s MiB by %s", a[1], a[0]);
        }
    broken("unknown way");
}

/* Stops, until another process continues it. */
static void stop_itself(char **a) {
    (void)a;
    printf("STOPPING\n");
    raise(SIGSTOP);
    escaped("went on");
}
/* Stops again and again, however often it is let go on. */
static void keep_stopping(char **a) {
    (void)a;
    signal(SIGTERM, SIG_IGN);
    printf("STOPPING\n");
    for (;;) raise(SIGTSTP), raise(SIGTTIN), raise(SIGSTOP);
}

const struct step limit_steps[] = {
    {"hoard", 2, hoard},
    {"stop-itself", 0, stop_itself},
    {"keep-stopping", 0, keep_stopping},
    {0},
};
