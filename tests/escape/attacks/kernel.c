/* Kernel services with a large attack surface or a view beyond the process. All of these work for ordinary users. */
#include "attack.h"
#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <time.h>
#include <linux/userfaultfd.h>

static void *map_ring(int ring, size_t size, off_t part) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, part);
    if (mapped == MAP_FAILED) broken("map ring");
    return mapped;
}
/* Opens a file through a ring: the kernel does the open, no system call filter sees it. */
static void io_uring_read(char **a) {
    struct io_uring_params p = {0};
    int ring = must(syscall(SYS_io_uring_setup, 2, &p), "io_uring_setup");
    size_t size = p.sq_off.array + p.sq_entries * 4 + p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *sq = map_ring(ring, size, IORING_OFF_SQ_RING);
    char *cq = p.features & IORING_FEAT_SINGLE_MMAP ? sq : map_ring(ring, size, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = map_ring(ring, p.sq_entries * sizeof *entry, IORING_OFF_SQES);
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)a[0]};
    ((uint32_t *)(sq + p.sq_off.array))[0] = 0;
    __atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    must(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), "io_uring_enter");
    struct io_uring_cqe *done = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
    errno = done->res < 0 ? -done->res : 0;
    spill(must(done->res, "open by io_uring"), "read by io_uring");
}
static void io_uring_reach(char **a) {
    (void)a;
    if (syscall(SYS_io_uring_setup, 0, NULL) < 0 && errno != EFAULT && errno != EINVAL) blocked("io_uring_setup");
    escaped("io_uring_setup reaches the kernel");
}

static void bpf_reach(char **a) {
    union bpf_attr attr = {.map_fd = 1000};
    (void)a;
    if (syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof attr) < 0 && errno != EBADF) blocked("bpf");
    escaped("bpf reaches the kernel");
}
static void perf(char **a) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK};
    attr.exclude_kernel = attr.exclude_hv = 1;
    must(syscall(SYS_perf_event_open, &attr, target(a[0]), -1, -1, 0), "perf_event_open");
    escaped("opened a performance counter");
}
static void user_fault(char **a) {
    (void)a;
    must(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY), "userfaultfd");
    escaped("handles page faults");
}
static void fanotify(char **a) {
    (void)a;
    must(syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY), "fanotify_init");
    escaped("opened a notification group");
}

static void key_add(char **a) {
    (void)a;
    must(syscall(SYS_add_key, "user", "nono-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING), "add_key");
    escaped("added a key");
}
static void key_request(char **a) {
    (void)a;
    if (syscall(SYS_request_key, "user", "nono-escape-absent", NULL, 0) < 0 && errno != ENOKEY) blocked("request_key");
    escaped("searched the keyrings");
}
static void key_control(char **a) {
    (void)a;
    must(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1), "keyctl");
    escaped("opened the user's keyring");
}

#ifdef SYS_modify_ldt
static void ldt(char **a) {
    char table[8];
    (void)a;
    must(syscall(SYS_modify_ldt, 0, table, sizeof table), "modify_ldt");
    escaped("reads its table of segments");
}
#endif
static void clock_state(char **a) {
    struct timex state = {0};
    must(!strcmp(a[0], "adjtimex") ? syscall(SYS_adjtimex, &state) : syscall(SYS_clock_adjtime, CLOCK_REALTIME, &state),
         a[0]);
    escaped("knows how the clock is kept");
}

static void core_limit(char **a) {
    struct rlimit limit;
    (void)a;
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_CORE, &limit), "setrlimit");
    if (limit.rlim_max == 0) errno = EPERM, blocked("core limit is 0");
    escaped("can dump %lu bytes of core", (unsigned long)limit.rlim_max);
}
/* A process that cannot be read cannot be watched: the call may answer success, but must have no effect. */
static void undumpable(char **a) {
    must(syscall(SYS_prctl, widened(a[0], PR_SET_DUMPABLE), 0, 0, 0, 0), "PR_SET_DUMPABLE");
    if (prctl(PR_GET_DUMPABLE) == 1) errno = EPERM, blocked("still dumpable");
    escaped("hid from the supervisor");
}

const struct step kernel_steps[] = {
    {"io-uring-read", 1, io_uring_read},
    {"io-uring-reach", 0, io_uring_reach},
    {"bpf-reach", 0, bpf_reach},
    {"perf", 1, perf},
    {"userfaultfd", 0, user_fault},
    {"fanotify", 0, fanotify},
    {"key-add", 0, key_add},
    {"key-request", 0, key_request},
    {"key-control", 0, key_control},
#ifdef SYS_modify_ldt
    {"ldt", 0, ldt},
#endif
    {"clock-state", 1, clock_state},
    {"core-limit", 0, core_limit},
    {"undumpable", 1, undumpable},
    {0},
};
