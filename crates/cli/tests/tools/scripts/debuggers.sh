# needs: gdb strace gcc / gdb strace gcc
set -e
cat > main.c <<'C'
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
int answer(int n) { return n + 2; }
int main(void) { if (fork() == 0) _exit(answer(1)); int s; wait(&s); printf("got %d\n", answer(40)); return 0; }
C
gcc -g -O0 main.c -o main
gdb -batch -nx -ex 'break answer' -ex run -ex 'print n' -ex bt -ex finish -ex continue ./main 2>&1 | grep -oE '^\$[0-9]+ = [0-9]+|^#[01].*|got 42|Value returned.*' | sed 's/0x[0-9a-f]*/ADDR/'
strace -f -o trace -e trace=execve,exit_group,clone,clone3,fork,vfork ./main
# Not the calls: of one that another interrupts strace makes two lines.
grep -o 'exited with [0-9]*' trace | sort
sleep 30 & strace -o attached -p $! & tracer=$!
until grep -q . attached 2> /dev/null; do sleep 0.05; done
kill %1; wait $tracer || true; grep -o 'killed by SIGTERM' attached
sleep 30 & gdb -batch -nx -p $! -ex 'info inferiors' 2>&1 | grep -c 'process'
kill $!
