# needs: perl awk sed tar / perl mawk sed tar
set -e
perl -MFile::Temp=tempfile -MIO::Socket::INET -e '
  my ($h, $n) = tempfile(); print {$h} "x"; close $h; print -s $n, "\n";
  my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $!;
  if (!fork) { my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport) or die $!; print $c "hi\n"; exit }
  print scalar readline $s->accept; wait; print "$?\n"; $0 = "renamed"; print `echo sub`;'
seq 10 > n && sed -i.old 's/5/five/' n && perl -pi -e 's/7/seven/' n && awk '{ t += $1 } END { print t }' n && cmp n n.old | wc -l
mkdir d && echo 1 > d/a && chmod 751 d && chmod 640 d/a && ln -s a d/l && tar -czpf d.tgz d && rm -rf d && tar -xzpf d.tgz && stat -c '%a %F %n' d d/a d/l
