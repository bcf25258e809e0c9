/* Terminals: typing into the terminal that nono was started from, and opening another one. */
#include "attack.h"
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

static int terminal(const char *which) {
    return !strcmp(which, "stdin") ? 0 : must(open("/dev/tty", O_RDWR | O_CLOEXEC), "open /dev/tty");
}

static void type_ahead(char **a) {
    int fd = terminal(a[0]);
    for (const char *c = "echo pwned\n"; *c; c++)
        must(syscall(SYS_ioctl, fd, widened(a[1], TIOCSTI), c), "TIOCSTI");
    escaped("typed into the terminal");
}
/* Only consoles know this request; ENOTTY from a pty says that it got as far as the driver. */
static void paste(char **a) {
    char selection = 3;
    long got = syscall(SYS_ioctl, terminal(a[0]), widened(a[1], TIOCLINUX), &selection);
    if (got < 0 && errno != ENOTTY && errno != EINVAL) blocked("TIOCLINUX");
    escaped("TIOCLINUX reaches the driver");
}
static void other(char **a) {
    int fd = must(open(a[0], O_RDWR | O_NOCTTY | O_CLOEXEC), "open terminal");
    must(write(fd, "pwned\n", 6), "write");
    escaped("wrote on another terminal");
}

const struct step tty_steps[] = {
    {"type", 2, type_ahead},
    {"paste", 2, paste},
    {"other-tty", 1, other},
    {0},
};
