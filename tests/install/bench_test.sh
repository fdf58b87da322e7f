#!/usr/bin/env bash
# Installs a build, and then perdix-bench, which is a package of its own: `perdix bench` says how to
# get it before, and runs it afterwards. The path has a space in it on purpose.
#
#   bench_test.sh <build directory>
set -euo pipefail

build=$1
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
prefix=$work/the\ prefix
export PATH=/usr/bin:/bin  # with no other perdix-bench in it

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

bench() { "$prefix/bin/perdix" bench "$@"; }

cmake --install "$build" --prefix "$prefix" >"$work/install.log"
answer=$(bench --help 2>&1) && fail "the benchmark was installed before it was asked for"
[[ $answer == *"make install-bench"* ]] || fail "perdix bench said: $answer"

before=$(find "$prefix" | sort)
cmake --install "$build" --prefix "$prefix" --component bench >>"$work/install.log"
mapfile -t figures < <(cd -- "$here/../../bench/figures" && printf '%s\n' *.toml)
added=$(comm -13 <(printf '%s\n' "$before") <(find "$prefix" | sort))
expected=$(printf '%s\n' "$prefix"/bin/perdix-bench "$prefix"/share/perdix{,/figures} \
  "${figures[@]/#/$prefix/share/perdix/figures/}" | sort)
[[ $(grep -vx "$prefix/share" <<<"$added") == "$expected" ]] || fail "the package has: $added"

[[ $(bench --help) == *"Examples:"*"perdix bench"* ]] || fail "perdix bench --help teaches nothing"
listed=$(bench figure)
for figure in "${figures[@]%.toml}"; do
  [[ $listed == *"$figure"* ]] || fail "perdix bench figure does not list $figure"
  bench figure "$figure" --help >"$work/help.log" || fail "$figure.toml can't be read"
done
bench figure ordered --systems sptree,btree_map --records 2k --operations 500 \
  --pool-dir "$work" --json "$work/ordered.json" >"$work/ordered.log" ||
  fail "the figures of ordered.toml can't be made"
grep -q '"wrong": 0' "$work/ordered.json" || fail "the report has no count of wrong answers"
