# A thin front: what is built how is in CMakePresets.json, and each step is a script or one cmake command.
# `make help` lists the targets.

PREFIX ?= /usr/local
TIME ?= 600

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slice test-all bench reproduction setup build dev release asan tsan instrumented \
	fuzz fuzz-campaign schedule-campaign kill-campaign storm \
	valkey valkey-test valkey-quick valkey-asan valkey-upstream demo-valkey \
	unit-test space-test conformance-test concurrency-test kill-test tool-test install-test \
	tidy-test model docs \
	crash-campaign persist-mutation planted-bugs \
	install install-plugins install-bench format tidy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

demo: ## load 663,473 words, kill it, reopen it, compare it (two minutes); does all its set-up
	@scripts/setup demo
	@scripts/build demo
	@build/demo/bin/perdix-demo $(ARGS)

test: ## build and run the tests that notice most (some ten minutes); does all its set-up
	@scripts/setup test
	@scripts/test quick

test-slice: ## a part of test-all that the commit chooses, or PERDIX_SLICE='asan:unit'
	@scripts/setup test-all
	@scripts/test --slice

test-all: ## all tests in all builds and all domains, and on a disk (hours)
	@scripts/setup test-all
	@scripts/test --all

bench: ## YCSB load and A-F beside the competitors; options in ARGS
	@scripts/setup bench
	@scripts/build bench perdix-bench
	@build/bench/bin/perdix-bench $(ARGS)

reproduction: ## make all figures of docs/reproduction.md anew, in build/reproduction; options in ARGS
	@scripts/setup test-all
	@scripts/reproduction $(ARGS)

setup: ## install the Debian or Ubuntu packages that are missing for development
	@scripts/setup test-all

build: release ## the same as release

release: ## build what users get, library and tool, in build/release
	@scripts/setup install
	@scripts/build release

dev: ## build everything with assertions, in build/dev
	@scripts/setup test-all
	@scripts/build dev

asan: ## build and test under AddressSanitizer and UBSan, and fuzz for less than a minute
	@scripts/setup test-all
	@scripts/test asan

tsan: ## build and test under ThreadSanitizer
	@scripts/setup test-all
	@scripts/test tsan

instrumented: ## build and test with the probe behind persistent memory
	@scripts/setup test-all
	@scripts/test instrumented

fuzz: ## build the fuzz targets and run them for less than a minute
	@scripts/setup test-all
	@scripts/build asan tests-fuzz
	@ctest --preset asan -L '^fuzz$$'

fuzz-campaign: ## fuzz pool files for TIME seconds (default 600)
	@scripts/setup test-all
	@scripts/build asan tests-fuzz
	@tests/fuzz/run.sh build/asan/tests/fuzz/fuzz_pool tests/fuzz/corpus/pool \
		-max_len=512 -max_total_time=$(TIME)

schedule-campaign: ## concurrent schedules with crashes for TIME seconds (default 600); options in ARGS
	@scripts/setup test-all
	@scripts/build instrumented schedule_fuzzer
	@build/instrumented/tests/linearizability/schedule_fuzzer \
		--seconds $(TIME) --seed "$$(date +%s)000" $(ARGS)

unit-test: ## the unit tests
space-test: ## those that fill pools or logs
conformance-test: ## every engine against a reference map
concurrency-test: ## many concurrent threads
kill-test: ## real processes, killed at random moments
tool-test: ## the command-line tool as a user meets it
unit-test space-test conformance-test concurrency-test kill-test tool-test: %-test:
	@scripts/setup test-all
	@scripts/build dev tests-$*
	@ctest --preset dev -j "$$(nproc)" -L '^$*$$'

kill-campaign: ## kill real processes for TIME seconds (default 600), also while they recover; options in ARGS
	@scripts/setup test-all
	@scripts/build dev perdix_kill
	@build/dev/tests/kill/perdix_kill --seconds $(TIME) --jobs 8 $(ARGS)

storm: ## everything together at random against models, for TIME seconds (default 600); options in ARGS
	@scripts/setup test-all
	@scripts/build dev perdix_storm
	@build/dev/tests/storm/perdix_storm --seconds $(TIME) $(ARGS)

crash-campaign: ## explore crash states for TIME seconds (default 600); options in ARGS, for example --engine sptree
	@scripts/setup test-all
	@scripts/build instrumented crash_explorer
	@build/instrumented/tests/crash/crash_explorer --jobs "$$(nproc)" --seconds $(TIME) --seed "$$(date +%s)" $(ARGS)

persist-mutation: ## suppress each flush and fence in turn, and see that the crash tests notice; options in ARGS
	@scripts/setup test-all
	@scripts/build instrumented crash_explorer schedule_fuzzer
	@tests/crash/persist_mutation.py --tests build/instrumented/tests $(ARGS)

planted-bugs: ## plant one bug at a time in a copy of the sources, and see that the tests notice; options in ARGS
	@scripts/setup test-all
	@tests/planted/planted_bugs.py $(ARGS)

valkey: ## build the module for Valkey and Redis, in build/valkey
	@scripts/setup valkey
	@scripts/build valkey perdix_valkey

valkey-test: ## build the module and test it under real servers
	@scripts/setup valkey
	@scripts/build valkey
	@ctest --preset valkey

valkey-quick: ## build the module and run a part of its tests with each server
	@scripts/setup valkey
	@scripts/build valkey
	@ctest --preset valkey-quick

valkey-asan: ## build the module with AddressSanitizer and UBSan, and test it under a real server
	@scripts/setup valkey
	@scripts/build valkey tests-valkey perdix_valkey_asan
	@ctest --preset valkey-asan

valkey-upstream: ## the servers' own suites with and without the module; options in ARGS
	@scripts/setup valkey
	@scripts/build valkey perdix_valkey perdix-tool
	@bindings/valkey/upstream/run.py $(ARGS)

demo-valkey: ## 663,473 words in a Redis that is killed, and a failover of a cluster
	@scripts/setup valkey
	@scripts/build valkey perdix_valkey
	@bindings/valkey/demo.py

install-test: ## an outside program against the installed tree
	@scripts/setup test-all
	@scripts/build dev
	@ctest --preset dev -L '^install$$'

model: ## check the model of NbTree's protocol, and that it finds planted bugs; options in ARGS
	@scripts/setup test-all
	@tests/model/nbtree/check_model.py $(ARGS)

tidy-test: ## the style and layering rules alone; needs only python3
	@tests/tidy/tidy.py
	@tests/tidy/tidy_test.py

tidy: tidy-test ## the style and layering rules, and the formatting
	@scripts/setup format
	@scripts/format --check

format: ## format all C++ sources in place
	@scripts/setup format
	@scripts/format

docs: ## build the pages of the public interface; fails on a public name without documentation
	@scripts/setup docs
	@scripts/build release docs

install: ## install headers, library and tool under PREFIX (default /usr/local); DESTDIR is honoured
	@scripts/setup install
	@scripts/build release
	@cmake --install build/release --prefix "$(PREFIX)"

install-plugins: ## install the library of further indexes for Tips under PREFIX, beside perdix
	@scripts/setup install
	@scripts/build release
	@cmake --install build/release --prefix "$(PREFIX)" --component plugins

install-bench: ## install perdix-bench, which `perdix bench` runs, under PREFIX
	@scripts/setup bench
	@scripts/build bench perdix-bench
	@cmake --install build/bench --prefix "$(PREFIX)" --component bench

clean: ## remove everything that was built
	@rm -rf build
