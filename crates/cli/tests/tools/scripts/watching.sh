# needs: inotifywait / inotify-tools
set -e
mkdir d && inotifywait -q -t 10 -e create,moved_to --format '%e %f' d > seen 2> errors & 
until grep -q inotify /proc/$!/wchan /proc/$!/fdinfo/* 2> /dev/null || ! kill -0 $!; do sleep 0.05; done
until test -d d; do sleep 0.05; done; sleep 0.2; echo x > d/new; wait $!; cat seen
