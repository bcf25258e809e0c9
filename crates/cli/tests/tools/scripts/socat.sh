# needs: socat / socat
set -e
echo datagrams | socat - EXEC:cat,socktype=2
echo streams | socat - SYSTEM:'tr a-z A-Z'
socat UNIX-LISTEN:door EXEC:cat & until [ -S door ]; do sleep 0.05; done
echo through a path | socat - UNIX-CONNECT:door
wait
