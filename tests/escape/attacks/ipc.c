/* Memory and queues that processes share by number or name: made outside by `host-ipc`, looked for inside. */
#include "attack.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

struct message {
    long type;
    char text[64];
};

static void shm_by_id(char **a) {
    char *memory = shmat(atoi(a[0]), NULL, SHM_RDONLY);
    if (memory == (void *)-1) blocked("shmat");
    escaped("attached: %s", memory);
}
static void shm_by_key(char **a) {
    char *memory = shmat(must(shmget(strtol(a[0], NULL, 16), 0, 0), "shmget"), NULL, SHM_RDONLY);
    if (memory == (void *)-1) blocked("shmat");
    escaped("attached: %s", memory);
}
static void msg_receive(char **a) {
    struct message got = {0};
    must(msgrcv(atoi(a[0]), &got, sizeof got.text, 0, IPC_NOWAIT), "msgrcv");
    escaped("received: %s", got.text);
}
static void sem_remove(char **a) {
    must(semctl(atoi(a[0]), 0, SETVAL, 7), "semctl");
    escaped("changed a semaphore");
}
static void mq_receive_name(char **a) {
    char text[128] = "";
    mqd_t queue = mq_open(a[0], O_RDONLY | O_NONBLOCK);
    must(queue == (mqd_t)-1 ? -1 : 0, "mq_open");
    must(mq_receive(queue, text, sizeof text, NULL), "mq_receive");
    escaped("received: %s", text);
}
static void posix_shm(char **a) { spill(must(shm_open(a[0], O_RDONLY, 0), "shm_open"), "shared memory by name"); }

/* The accomplice outside: makes one of each, says where, and removes them when its stdin ends. */
static void host_ipc(char **a) {
    char name[64];
    struct message message = {.type = 1};
    struct mq_attr shape = {.mq_maxmsg = 2, .mq_msgsize = 128};
    key_t key = 0x6e000000 | getpid();
    int shm = need(shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600), "shmget");
    int msg = need(msgget(IPC_PRIVATE, 0600), "msgget"), sem = need(semget(IPC_PRIVATE, 1, 0600), "semget");
    strncpy(shmat(shm, NULL, 0), a[0], 64);
    strncpy(message.text, a[0], sizeof message.text - 1);
    need(msgsnd(msg, &message, sizeof message.text, 0), "msgsnd");
    snprintf(name, sizeof name, "/nono-escape-%d", getpid());
    mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &shape);
    need(queue == (mqd_t)-1 ? -1 : 0, "mq_open");
    need(mq_send(queue, a[0], strlen(a[0]), 0), "mq_send");
    int file = need(shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600), "shm_open");
    need(write(file, a[0], strlen(a[0])), "write");
    printf("READY shmid=%d key=%x msgid=%d semid=%d name=%s\n", shm, key, msg, sem, name);
    for (char line[16]; fgets(line, sizeof line, stdin);)
        printf("STATE sem %d file %ld\n", semctl(sem, 0, GETVAL), lseek(file, 0, SEEK_END));
    shmctl(shm, IPC_RMID, NULL), msgctl(msg, IPC_RMID, NULL), semctl(sem, 0, IPC_RMID);
    mq_unlink(name), shm_unlink(name);
    exit(0);
}

const struct step ipc_steps[] = {
    {"shm-id", 1, shm_by_id},
    {"shm-key", 1, shm_by_key},
    {"msg-receive", 1, msg_receive},
    {"sem-set", 1, sem_remove},
    {"mq-receive", 1, mq_receive_name},
    {"posix-shm", 1, posix_shm},
    {"host-ipc", 1, host_ipc},
    {0},
};
