# needs: tmux / tmux
set -e
tmux -f /dev/null -L inner new-session -d -s one -x 80 -y 24 'echo in tmux; sleep 30' && tmux -L inner list-sessions -F '#{session_name} #{window_width}'
until tmux -L inner capture-pane -p -t one | grep 'in tmux'; do sleep 0.05; done
tmux -L inner new-window -d -t one 'sleep 30' && tmux -L inner list-windows -t one | wc -l && tmux -L inner kill-server && echo ended
