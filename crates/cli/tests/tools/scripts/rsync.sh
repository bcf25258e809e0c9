# needs: rsync / rsync
set -e
mkdir -p a/deep && echo text > a/deep/file && ln a/deep/file a/hard && ln -s deep a/soft && chmod 2751 a/deep && touch -d 2001-01-01 a/hard
rsync -aH a/ ../other/synced/ && diff -r a ../other/synced && stat -c '%h %Y' ../other/synced/hard && stat -c %a ../other/synced/deep
echo more >> a/deep/file && touch ../other/synced/extra && rsync -aHiO --delete a/ ../other/synced/ | sort && rsync -a --remove-source-files a/ ../other/rest && find a -type f | wc -l
