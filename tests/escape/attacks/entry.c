/* Other entries into the kernel: the 32-bit entry and the x32 numbers of x86-64. */
#include "attack.h"
#include <signal.h>
#include <sys/mman.h>
#ifdef __x86_64__

static void no_entry(int number) {
    (void)number;
    static const char line[] = "BLOCKED: int 0x80 ENOSYS\n";
    if (write(1, line, sizeof line - 1)) _exit(1);
    _exit(1);
}
static long call32(long number, long b, long c) {
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(b), "c"(c), "d"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}
/* open(2) by its 32-bit number 5; the path must lie in the low 4 GB. */
static void int80_read(char **a) {
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) broken("mmap");
    signal(SIGSEGV, no_entry);
    strncpy(low, a[0], 4095);
    long fd = call32(5, (long)low, O_RDONLY);
    errno = fd < 0 ? -fd : 0;
    spill(must(fd, "int 0x80 open"), "read by int 0x80");
}
static void int80_reach(char **a) {
    (void)a;
    signal(SIGSEGV, no_entry);
    if (call32(20 /* getpid */, 0, 0) != getpid()) blocked("int 0x80 getpid");
    escaped("the 32-bit entry answers");
}
/* Most kernels have no x32; they still run the dispatcher, and a filter must not mistake the number for another. */
static void x32_reach(char **a) {
    (void)a;
    syscall(0x40000000 | SYS_getpid);
    escaped("the x32 entry answers");
}
static void x32_read(char **a) {
    long fd = syscall(0x40000000 | SYS_open, a[0], O_RDONLY);
    if (fd < 0 && errno == ENOSYS) escaped("the x32 entry answers, without x32 in the kernel");
    spill(must(fd, "x32 open"), "read by x32");
}
#else
static void absent(char **a) {
    (void)a;
    errno = ENOSYS;
    blocked("not on this architecture");
}
#define int80_read absent
#define int80_reach absent
#define x32_reach absent
#define x32_read absent
#endif

/* A call by number with a bad descriptor: anything but a refusal means that the kernel knows it and looked. */
static void reach_call(char **a) {
    long got = syscall(atol(a[0]), -1, 0, 0, 0, 0);
    if (got < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES)) blocked(a[0]);
    escaped("call %s reaches the kernel", a[0]);
}

const struct step entry_steps[] = {
    {"int80-read", 1, int80_read},
    {"int80-reach", 0, int80_reach},
    {"x32-reach", 0, x32_reach},
    {"x32-read", 1, x32_read},
    {"reach-call", 1, reach_call},
    {0},
};
