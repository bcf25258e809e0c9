# needs: gcc ar / gcc binutils libc6-dev
set -e
cat > main.c <<'C'
#include <stdio.h>
#include <pthread.h>
int half(int);
static void *work(void *n) { *(int *)n = half(*(int *)n); return n; }
int main(void) { int n = 84; pthread_t t; pthread_create(&t, 0, work, &n); pthread_join(t, 0); printf("%d\n", n); return 0; }
C
echo 'int half(int n) { return n / 2; }' > half.c
gcc -O2 -pipe -c half.c && ar rcs libhalf.a half.o && gcc -g -pthread main.c -L. -lhalf -o static && ./static
gcc -shared -fPIC half.c -o libhalf.so && gcc main.c -L. -lhalf -Wl,-rpath,"$PWD" -pthread -o dynamic && ./dynamic
gcc -flto -O2 half.c main.c -pthread -o lto && ./lto
