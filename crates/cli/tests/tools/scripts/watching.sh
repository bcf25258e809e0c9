# needs: inotifywait / inotify-tools
set -e
mkdir d
inotifywait -t 10 -e create --format '%e %f' d > seen 2> state &
until grep -q 'Watches established' state; do sleep 0.05; done
echo x > d/new
wait $!
cat seen
