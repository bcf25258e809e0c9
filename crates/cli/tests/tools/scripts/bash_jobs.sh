# needs: bash setsid nohup timeout nice taskset / bash util-linux coreutils
set -m
sleep 30 & sleep 31 & jobs -r | wc -l
kill -STOP %1; until jobs -s | grep -q 'sleep 30'; do sleep 0.05; done; jobs -s | wc -l
bg %1 > /dev/null; kill %1 %2; wait; echo "waited $?"
(trap 'echo usr1; exit 5' USR1; kill -USR1 $BASHPID; sleep 5); echo "trap $?"
sh -c 'kill -TERM $$'; echo "killed $?"
timeout 0.2 sleep 9; echo "timeout $?"; timeout 5 echo in time
nohup sh -c 'echo nohup' 2> /dev/null < /dev/null | cat; setsid -w sh -c 'echo setsid'; nice -n 5 nice
taskset -c 0 sh -c 'taskset -p $$ | grep -o "mask: 1"'; (time true) 2>&1 | grep -c real
coproc cat; echo coprocess >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"; kill $COPROC_PID; wait $COPROC_PID 2> /dev/null; echo "coproc $?"
sleep 0.1 & wait -n; echo "one $?"; for i in 1 2 3; do (exit $i) & done; wait; (exit 7) & wait $!; echo "last $?"
