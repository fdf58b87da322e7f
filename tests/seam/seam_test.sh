#!/usr/bin/env bash
# Shows that the hooks of the instrumented build cost nothing in a normal one: compiles an engine
# twice as a release is compiled, once as it is and once against copies of pm/access.h and
# pm/persist.h from which the hooks and their call sites are cut, and compares the machine code.
#
#   seam_test.sh <compiler> <source directory> <objdump> [<-march>]
set -euo pipefail

compiler=$1
source_dir=$2
objdump=$3
march=${4:-}
unit=src/index/sptree/sptree.cc

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# Without the parameters that name call sites, and without the lines that call a hook.
cut_hooks() {
  sed -e 's/, Site site = Site::current()//; s/Site site = Site::current()//' \
    -e 's/, site)/)/g; s/(site)/()/g' \
    -e '/^ *on_\(read\|write\)(/d; /^ *if (!on_\(flush\|fence\)(/d' "$1"
}

mkdir -p "$work/without/pm"
for header in access persist; do
  cut_hooks "$source_dir/src/pm/$header.h" >"$work/without/pm/$header.h"
  if cmp -s "$source_dir/src/pm/$header.h" "$work/without/pm/$header.h"; then
    echo "nothing was cut from pm/$header.h: this test no longer knows the seam" >&2
    exit 1
  fi
  if grep -Eq 'on_(read|write|flush|fence)\(|Site' "$work/without/pm/$header.h"; then
    echo "a hook is left in pm/$header.h: this test no longer knows the seam" >&2
    exit 1
  fi
done

flags=(-O3 -DNDEBUG -std=c++20 -fPIC)
if [[ -n $march ]]; then flags+=("-march=$march"); fi

# The code of a build as text: no addresses, so that only instructions and their targets count.
code() {
  local name=$1
  shift
  "$compiler" "${flags[@]}" "$@" "-I$source_dir/src" "-I$source_dir/include" \
    -c "$source_dir/$unit" -o "$work/$name.o"
  "$objdump" -d --no-show-raw-insn --no-addresses "$work/$name.o" |
    sed -e '1,/^Disassembly/d' >"$work/$name.s"
}

code with
code without "-I$work/without"

count=$(grep -c $'^\t' "$work/with.s" || true)
if ((count < 1000)); then
  echo "only $count instructions in $unit: this test compares nothing" >&2
  exit 1
fi
if ! diff -u "$work/without.s" "$work/with.s" >"$work/diff"; then
  echo "the seam changes the code of $unit ($(wc -l <"$work/diff") lines of diff):" >&2
  head -n 60 "$work/diff" >&2
  exit 1
fi
echo "$unit: $count instructions, the same with the seam and without"
