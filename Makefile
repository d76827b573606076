# SPDX-License-Identifier: MIT
# The short way in.  Build logic is in meson.build; this file only forwards to it,
# after scripts/bootstrap.sh has installed what a target needs.
#
#	make                 the library and the tool, at ./build/quiesce
#	make run             build, then measure this machine in about four minutes with the build and installs: six lines, and tables
#	make scale           the costs of each operation on up to 256 CPUs, on a modelled machine: minutes; PAGE=1 writes them to docs/
#	make report          the same at length, as a page with pictures: twelve minutes
#	make figures         measure, and write the figures and pictures of README.md and docs/: ten minutes on a quiet machine
#	make test            every suite, in less than five minutes, but for a few slow tests of .ci/run
#	make test-release    the long runs: hours
#	make mutants         every mutant on its killer; last line: N mutants, N killed
#	make random-mutants  random changes of the sources, which tests must notice: N=50, SEED=1; `python3 scripts/mutants.py --help`
#	make linear          millions of operations on containers, judged by a checker in Go
#	make test-kernel     the kernel modules in QEMU: two hours; with SHORT=1 five minutes
#	make test-smp        the library in guests of QEMU with many CPUs, some of which go and come: under an hour; with SHORT=1 two minutes
#	make test-arm64      the library on an emulated arm64, with Debian's kernel: hours; with SHORT=1 minutes
#	make test-kernel-lockdep  lockdep with hazard pointers, sanitizers, time slices: builds four kernels; two hours
#	make test-environments  the library in servers, languages, allocators, tools and forms of a build; installs them
#	make bench-rust      the Rust crate, and others beside it; installs cargo
#	make install         the library and the tool, not the tests: PREFIX=..., /usr/local if nothing else was said; DESTDIR=...
#	make uninstall       what the last `make install` has installed
#	make dist            the tarball of a release, tried where there is no git: $(BUILD)/meson-dist
#	make release-check   what is missing for a release; exit status 1 if that is anything
#	make deb             packages for Debian, tried in a fresh root: $(BUILD)/deb; packaging/debian/README.md
#	make clean

BUILD ?= build
PREFIX ?=
DESTDIR ?=
MESON ?= meson

all: bootstrap-run $(BUILD)/build.ninja
	@ninja -C $(BUILD) product

run: all
	@./$(BUILD)/quiesce run

report: bootstrap-report all
	@./$(BUILD)/quiesce report

# Figures are those of a release build.
figures: bootstrap-report
	@[ -f $(BUILD)-release/build.ninja ] || $(MESON) setup $(BUILD)-release --buildtype=release
	@ninja -C $(BUILD)-release product
	@python3 tools/report/figures.py --tool $(BUILD)-release/quiesce --root . $(if $(SHORT),--short)

test: bootstrap-test $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@MESON="$(MESON)" scripts/run-tests.py $(BUILD) --no-suite slow --no-rebuild --print-errorlogs

scale: bootstrap-report $(BUILD)/build.ninja
	@ninja -C $(BUILD) tests/scale/scale
	@python3 tests/scale/scale.py --scale $(BUILD)/tests/scale/scale --json $(BUILD)/scale.json \
		$(if $(PAGE),--picture docs/pictures/scale.png --page docs/scaling.md,--picture $(BUILD)/scale.png)

test-release:
	@scripts/test-release.sh

mutants: bootstrap-test $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@python3 tests/litmus/run.py --fetch tests/litmus/RU1.litmus || echo "herd7 is out of reach: its mutants will not run"
	@python3 scripts/mutants.py --build $(BUILD)

random-mutants: bootstrap-test
	@python3 scripts/mutants.py --build $(BUILD) --random $(or $(N),50) --seed $(or $(SEED),1)

test-environments: bootstrap-environments
	@python3 tests/environments/run.py

test-kernel: bootstrap-kernel $(if $(SHORT),,bootstrap-test)
	@python3 tests/kernel/run.py $(if $(SHORT),--short)

test-kernel-lockdep: bootstrap-run bootstrap-kernel bootstrap-kernels
	@python3 tests/kernel/run.py --lockdep

test-smp: bootstrap-test bootstrap-kernel $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@python3 tests/kernel/run.py --smp --product $(BUILD) --build $(BUILD)/smp --logs $(BUILD)/smp/logs $(if $(SHORT),--short,--seconds=10)

test-arm64: bootstrap-arm64
	@python3 tests/kernel/run.py --arm64 --build $(BUILD)/arm64 --logs $(BUILD)/arm64/logs $(if $(SHORT),--short)

linear: bootstrap-linear $(BUILD)/build.ninja
	@ninja -C $(BUILD) recorders
	@python3 tests/linear/run.py --build $(BUILD) --operations 1000000

bench-rust: bootstrap-rust
	@cd rust && cargo build --release -p quiesce-bench && ./target/release/readers && ./target/release/hashscale

# Without PREFIX nothing is configured anew, so that after `make` root has only to copy.
install: bootstrap-run $(BUILD)/build.ninja
	@$(if $(PREFIX),$(MESON) configure $(BUILD) --prefix=$(abspath $(PREFIX)))
	@ninja -C $(BUILD) product
	@$(MESON) install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir=$(abspath $(DESTDIR)))

uninstall:
	@ninja -C $(BUILD) uninstall

dist: bootstrap-test $(BUILD)/build.ninja
	@MESON="$(MESON)" scripts/dist.sh $(BUILD)

release-check: bootstrap-run $(BUILD)/build.ninja
	@ninja -C $(BUILD) product >/dev/null
	@python3 scripts/release-check.py --library "$$(readlink -f $(BUILD)/src/libquiesce.so)"

deb: bootstrap-deb $(BUILD)/build.ninja
	@MESON="$(MESON)" scripts/deb.sh $(BUILD)

clean:
	@rm -rf $(BUILD)

bootstrap-%:
	@BUILD=$(BUILD) scripts/bootstrap.sh $*
	@if [ -f $(BUILD)/packages-changed ]; then $(MESON) configure --clearcache $(BUILD) && $(MESON) setup --reconfigure $(BUILD) >/dev/null; rm -f $(BUILD)/packages-changed; fi

$(BUILD)/build.ninja: | bootstrap-run
	@$(MESON) setup $(BUILD)

.PHONY: all run report figures scale test test-release test-environments test-kernel test-smp test-arm64 test-kernel-lockdep mutants random-mutants linear bench-rust install uninstall dist release-check deb clean
