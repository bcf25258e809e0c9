# needs: rg / ripgrep
set -e
git init -q . 2> /dev/null || true
mkdir -p src && echo 'fn main() { needle() }' > src/a.rs && echo needle > ignored && echo ignored > .gitignore && mkdir .git 2> /dev/null || true
rg --sort path -n needle && rg --no-ignore -c needle --sort path && rg --files --sort path && rg -l --mmap needle ../work/src | wc -l
