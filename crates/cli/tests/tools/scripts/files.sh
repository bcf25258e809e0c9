# needs: flock install find xargs python3 / util-linux coreutils findutils python3
set -e
mkdir -p a/deep/er && echo text > a/deep/er/file && ln a/deep/er/file a/hard && ln -s deep a/soft && chmod 2751 a/deep && touch -d 2001-01-01 a/hard
cp -a a ../other/copy && diff -r a ../other/copy
stat -c '%h %Y %n' ../other/copy/hard && stat -c %a ../other/copy/deep
# Two grants are two mounts: moving between them copies, and a hard link stays in one.
mv a ../other/moved && test ! -e a && mv ../other/moved/hard ./back && cat back && mv -n back ../other/moved/again && stat -c %Y ../other/moved/again
ln ../other/moved/again ../other/linked && test ../other/linked -ef ../other/moved/again && python3 -c 'import shutil; shutil.move("../other/linked", "here")' && cat here
(flock 9; echo locked; flock -n lock true || echo busy) 9> lock
install -m 755 -D /bin/true bin/true && bin/true && mkfifo pipe && (echo through > pipe & cat pipe; wait)
truncate -s 1M sparse && fallocate -l 1M full 2> /dev/null || true; stat -c %s sparse
find ../other -type f | sort | xargs -P4 -n1 cat | wc -l
touch a\ b $'new\nline' && find . -maxdepth 1 -type f -print0 | xargs -0 rm -f && rm -rf bin ../other/* && ls -A ../other | wc -l
mktemp > made && test -s made && rm "$(cat made)" && dd if=/dev/zero of=zero bs=64k count=16 2> /dev/null && sync zero && sha256sum zero | cut -c1-8
cd .. && cd work && test "$PWD" = "$(pwd -P)" && df . > /dev/null && du -s . > /dev/null && echo all
