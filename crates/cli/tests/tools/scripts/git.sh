# needs: git / git
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main repo && cd repo
echo one > file && ln -s file link && git add . && git commit -qm first
echo two >> file && git status --short && git diff --stat
git commit -qam second && git log --oneline
git branch side HEAD~1 && git checkout -q side && echo x > side && git add . && git commit -qm side
git rebase -q main && git log --format=%s
git stash list && git gc -q && git fsck --no-progress
cd .. && git clone -q repo copy && git clone -q --no-local repo far && git -C far log --format=%h
git clone -q --bare repo ../other/bare.git && git -C copy push -q ../../other/bare.git side:pushed
git -C ../other/bare.git branch --list | sort
git -C repo worktree add -q ../../other/tree main && git -C ../other/tree status --short --branch
git -C repo archive HEAD | tar -t
