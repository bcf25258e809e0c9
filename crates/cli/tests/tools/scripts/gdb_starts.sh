# needs: gdb / gdb
set -e
gdb -batch -ex 'print 40 + 2' 2>&1
