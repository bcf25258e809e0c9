# needs: dpkg / dpkg
set -e
dpkg -l dpkg | tail -n 1 | cut -c 1-8
dpkg -S /usr/bin/dpkg
dpkg-query -W -f '${Status}\n' dpkg
