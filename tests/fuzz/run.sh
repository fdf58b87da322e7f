#!/usr/bin/env bash
# Runs a fuzz target over its kept corpus and then with new input. What is new is kept only for the
# run; an input that fails stays in the current folder, and the message names it.
#
#   run.sh <target> <corpus> [options of libFuzzer...]
set -euo pipefail

target=$1
corpus=$2
shift 2
found=$(mktemp -d)
trap 'rm -rf -- "$found"' EXIT
"$target" -timeout=300 -rss_limit_mb=4096 -len_control=0 -print_final_stats=1 "$@" \
  "$found" "$corpus"
