/*
 * The vocabulary of the hostile child.
 *
 * An attack is a chain of steps, `step args , step args`. Only the last step gives the verdict;
 * the earlier ones prepare the ground and may fail. A verdict is one line on stdout and an exit code:
 *
 *   ESCAPED  0   the step did what the sandbox must prevent (also the answer of a positive control)
 *   WORKED   0   the step did what the sandbox must leave alone
 *   BLOCKED  1   the kernel said no, with the call and the errno
 *   BROKEN   2   the attack could not even be tried; proves nothing
 *   TRIED    3   the call was made, only an observer outside can see whether it had an effect
 */
#ifndef ATTACK_H
#define ATTACK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRAPS = -1 }; /* the step runs another program: the rest of the line, commas included, is its own */

struct step {
    const char *name;
    int args; /* at least this many */
    void (*run)(char **args);
};

extern const struct step file_steps[], meta_steps[], handle_steps[], process_steps[], proc_steps[], namespace_steps[],
    kernel_steps[], root_steps[], exec_steps[], entry_steps[], inet_steps[], family_steps[], unix_steps[], tty_steps[],
    ipc_steps[], survivor_steps[], host_steps[], asking_steps[], exact_steps[], words_steps[], limit_steps[];

_Noreturn void escaped(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void worked(const char *what);
_Noreturn void tried(const char *what);
_Noreturn void blocked(const char *call);
_Noreturn void broken(const char *what);

/* `must` is for the attack itself, `need` for its own preparations. */
static inline long must(long result, const char *call) {
    if (result < 0) blocked(call);
    return result;
}
static inline long need(long result, const char *call) {
    if (result < 0) broken(call);
    return result;
}

/* Wait until the tester says to go on. */
static inline void wait_for_line(void) {
    int c;
    while ((c = getchar()) != '\n')
        if (c == EOF) broken("the tester is gone");
}

/* `stream`, `dgram`, `raw` or `seqpacket`. */
int socket_type(const char *word);

/* A request or option as it is, or (`wide`) with a bit above the 32 that the kernel looks at. */
unsigned long widened(const char *width, unsigned long number);

/* Reads a little from `fd` and reports it: the harness looks for its secret in that line. */
_Noreturn void spill(int fd, const char *how);

/* A process id: a number, `parent`, `self`, or `-` for a line on stdin. */
pid_t target(const char *word);
#endif
