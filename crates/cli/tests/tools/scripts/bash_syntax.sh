# needs: bash / bash
set -e
cat <<X; cat <<< here
heredoc $((40 + 2))
X
diff <(seq 3) <(printf '1\n2\n3\n') && paste <(seq 2) <(seq 2); seq 5 | tee >(wc -l > count) > /dev/null; until test -s count; do sleep 0.05; done; cat count
exec 3<> both; echo x >&3; cat both; exec 3>&-; { echo err >&2; } 2>&1; cat < /dev/null; echo lost > /dev/null; head -c 4 /dev/zero | wc -c
f() { echo "$#"; }; export -f f; bash -c 'f 1 2'; shopt -s globstar; mkdir -p x/y && touch x/y/z && echo x/**/z; printf '%(%Y)T\n' 0
big=$(head -c 300000 /dev/zero | tr '\0' x); echo ${#big}; /bin/echo $(seq 20000) | wc -w; printf '#!/bin/sh\necho script $1\n' > s && chmod +x s && ./s one; echo 'echo bare' > t && chmod +x t && ./t
bash -c 'echo to-error > /dev/stderr; echo to-out > /dev/stdout' 2>&1 | cat; ls /dev/fd/ > /dev/null; test -r /proc/self/status && cat /proc/$$/comm
