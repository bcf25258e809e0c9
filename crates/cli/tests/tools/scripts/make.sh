# needs: make gcc / make gcc
set -e
cat > Makefile <<'M'
ALL := $(foreach n,1 2 3 4 5 6 7 8 9 10 11 12,out/$n)
all: $(ALL)
	cat $(ALL)
out/%: | out
	@sleep 0.05; echo $* > $@
out:
	mkdir $@
clean:
	$(MAKE) -s -j2 -C . really
really:
	rm -rf out
M
make -s -j8 && make -s -j4 && make -s clean && test ! -e out && echo clean
if make -s nothing 2> errors; then exit 1; fi
