# needs: prlimit / util-linux
ulimit -n 64 && ulimit -n; (ulimit -f 1; head -c 100000 /dev/zero > f) 2> /dev/null; echo "size $?"; stat -c %s f
(ulimit -v 200000; ulimit -v); (ulimit -c 0; ulimit -c); ulimit -S -s 4096; ulimit -s; prlimit --nofile=32 sh -c 'ulimit -n'; (ulimit -t 1; while :; do :; done); echo "cpu $?"
