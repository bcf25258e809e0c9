/* Runs a chain of steps; see attack.h for what the verdicts mean. */
#include "attack.h"
#include <setjmp.h>
#include <stdarg.h>

static jmp_buf next_step;
static char **resume; /* where the next step begins */
static int is_last, lingers;

static const struct step *const tables[] = {
    file_steps, meta_steps,  handle_steps, process_steps, proc_steps, namespace_steps, kernel_steps,   root_steps,
    exec_steps, entry_steps, inet_steps,   family_steps,  unix_steps, tty_steps,       ipc_steps,      survivor_steps,
    host_steps, asking_steps, exact_steps, words_steps, limit_steps,
};

_Noreturn static void verdict(int code, const char *word, const char *text) {
    printf("%s%s: %s\n", is_last ? "" : "  step: ", word, text);
    if (!is_last) longjmp(next_step, 1);
    while (lingers && getchar() != EOF) {
    }
    exit(code);
}

_Noreturn static void failure(int code, const char *word, const char *call) {
    char line[256];
    const char *name = strerrorname_np(errno);
    snprintf(line, sizeof line, "%s %s", call, name ? name : "no errno");
    verdict(code, word, line);
}

void escaped(const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    verdict(0, "ESCAPED", line);
}
void worked(const char *what) { verdict(0, "WORKED", what); }
void tried(const char *what) { verdict(3, "TRIED", what); }
void blocked(const char *call) { failure(1, "BLOCKED", call); }
void broken(const char *what) { failure(2, "BROKEN", what); }

void spill(int fd, const char *how) {
    char text[201] = "";
    long got = must(pread(fd, text, sizeof text - 1, 0), "read");
    for (char *c = text; c < text + got; c++)
        if (*c < ' ') *c = ' ';
    escaped("%s: %s", how, text);
}

int socket_type(const char *word) {
    static const char *const names[] = {"", "stream", "dgram", "raw", "", "seqpacket"};
    for (int type = 1; type < 6; type++)
        if (!strcmp(names[type], word)) return type;
    broken("unknown socket type");
}

unsigned long widened(const char *width, unsigned long number) {
    return !strcmp(width, "wide") ? number | 1ul << 32 : number;
}

pid_t target(const char *word) {
    char line[32];
    if (!strcmp(word, "parent")) return getppid();
    if (!strcmp(word, "self")) return getpid();
    if (!strcmp(word, "-")) word = fgets(line, sizeof line, stdin);
    if (!word || atoi(word) <= 0) broken("no target pid");
    return atoi(word);
}

static const struct step *find(const char *name) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct step *s = tables[t]; s->name; s++)
            if (!strcmp(s->name, name)) return s;
    return NULL;
}

static int length(char **words, int wraps) {
    int n = 0;
    while (words[n] && (wraps || strcmp(words[n], ","))) n++;
    return n;
}
/* Cuts the step that begins at `at` off the line, notes where the next one begins, and says which it is. */
static const struct step *cut(char **at) {
    const struct step *step = *at ? find(*at) : NULL;
    int n = step ? length(at, step->args == WRAPS) : 0;
    resume = at[n] ? at + n + 1 : NULL;
    at[n] = NULL;
    is_last = !resume;
    errno = EINVAL;
    if (!step || n - 1 < step->args) is_last = 1, broken("unknown or incomplete step");
    if (step->args != WRAPS) printf("TRYING: %s\n", step->name);
    errno = 0;
    return step;
}

int main(int argc, char **argv) {
    resume = argv + 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && !strcmp(argv[1], "--linger")) lingers = 1, resume++;
    for (;;) {
        char **at = resume;
        if (setjmp(next_step)) continue;
        cut(at)->run(at + 1);
        broken("step without verdict");
    }
}
