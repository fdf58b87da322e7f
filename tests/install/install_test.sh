#!/usr/bin/env bash
# Installs a build into an empty prefix, then builds and runs programs against it in the two ways
# that users have, find_package and pkg-config: those in outside/ and plugins/, and the examples/ of
# the repository. The paths have a space in them on purpose.
#
#   install_test.sh [--quick] <build directory> <C++ compiler>
#
# With --quick, without what the build `plain` shows: headers alone, and the programs of outside/.
set -euo pipefail

quick=0
if [[ $1 == --quick ]]; then
  quick=1
  shift
fi
build=$1
export CXX=$2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
outside=$here/outside
examples=$here/../../examples
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
prefix=$work/the\ prefix

say() { printf -- '--- %s\n' "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

check_runs() {  # <program>
  local answer
  answer=$("$1" "$work/$(basename -- "$1").pool")
  [[ $answer == "two crates of pears" ]] || fail "$1 said: $answer"
}

check_example() {  # <expected output> <program> <argument>...
  local expected=$1 answer
  shift
  answer=$("$work/examples/$1" "$work/$1.pool" "${@:2}") || fail "$* failed"
  [[ $answer == "$expected" ]] || fail "$* said: $answer"
}

say "install"
cmake --install "$build" --prefix "$prefix" >"$work/install.log"
stray=$(find "$prefix/include" -type f -not -path "$prefix/include/perdix/*")
[[ -z $stray ]] || fail "headers outside of perdix/ were installed: $stray"

say "the library of further indexes for Tips comes only if it is asked for"
for header in tips_indexes tips_indexes_c; do
  [[ ! -e $prefix/include/perdix/$header.h ]] || fail "its header $header.h is there"
done
plugins=$here/plugins
if cmake -S "$plugins" -B "$work/no plugins" -DCMAKE_PREFIX_PATH="$prefix" \
  >"$work/refused.log" 2>&1; then
  fail "find_package finds the component tips-plugins, which is not there"
fi
grep -q 'tips-plugins' "$work/refused.log" || fail "the refusal does not name the component"
cmake --install "$build" --prefix "$prefix" --component plugins >>"$work/install.log"
cmake -S "$plugins" -B "$work/plugins" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" ||
  { cat "$work/configure.log"; fail "a project with tips-plugins does not configure"; }
cmake --build "$work/plugins"
for program in use_art use_art_c; do check_runs "$work/plugins/$program"; done

say "a program with a further index has no engine but Tips"
engines=$(sed -n 's/^set(PERDIX_ALL_ENGINES \(.*\))$/\1/p' "$here/../../cmake/engines.cmake")
[[ -n $engines ]] || fail "cmake/engines.cmake lists no engines"
has_engine() { nm -C "$1" | grep "index::$2::engine_set" >/dev/null; }  # <program> <engine>
# A shared library has all engines, and the instruments of an instrumented one refer to all.
one_by_one=0
library=$(find "$prefix" -name libperdix.a)
if [[ -n $library ]] && ! nm -C "$library" | grep "perdix::testing::" >/dev/null; then
  one_by_one=1
fi
if ((one_by_one)); then
  for engine in $engines; do
    has_engine "$work/plugins/use_art_c" "$engine" || fail "use_art_c lacks the engine $engine"
    if [[ $engine == tips ]]; then continue; fi
    ! has_engine "$work/plugins/use_art" "$engine" || fail "use_art has the engine $engine"
  done
  has_engine "$work/plugins/use_art" tips || fail "use_art lacks the engine tips"
fi

if ((!quick)); then
  say "every public header compiles alone"
  while IFS= read -r -d '' header; do
    printf '#include <%s>\n' "${header#"$prefix/include/"}" |
      "$CXX" -std=c++20 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only -x c++ -
  done < <(find "$prefix/include" -name '*.h' -print0)

  say "the header for C is one in C"
  printf '#include <perdix/tips_c.h>\n' |
    "${CC:-cc}" -std=c11 -Wall -Wextra -pedantic -Werror -I"$prefix/include" -fsyntax-only -x c -

  say "find_package"
  cmake -S "$outside" -B "$work/by find_package" -DCMAKE_PREFIX_PATH="$prefix" \
    >"$work/configure.log" ||
    { cat "$work/configure.log"; fail "the outside project does not configure"; }
  cmake --build "$work/by find_package"
  for program in outside use_list use_table; do check_runs "$work/by find_package/$program"; done
fi

say "a header compiles by its old name, which tells the new one; the new name tells nothing"
compile() {  # <header> <log>
  printf '#include <perdix/%s>\nint main() {}\n' "$1" >"$work/includes.cc"
  # With -isystem clang shows no message, and with -Werror it takes one for an error.
  "$CXX" -std=c++20 -Wall -Wextra -I"$prefix/include" -fsyntax-only \
    "$work/includes.cc" 2>"$2" || { cat "$2"; fail "<perdix/$1> does not compile"; }
}
for header in "$prefix"/include/perdix/papers/*.h; do
  name=$(basename -- "$header")
  compile "$name" "$work/old.log"
  grep -q "include <perdix/papers/$name>" "$work/old.log" || fail "<perdix/$name> tells nothing"
  compile "papers/$name" "$work/new.log"
  [[ ! -s $work/new.log ]] || { cat "$work/new.log"; fail "<perdix/papers/$name> is not silent"; }
done

say "examples"
cmake -S "$examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" ||
  { cat "$work/configure.log"; fail "the examples do not configure"; }
cmake --build "$work/examples"
check_example "" embedded_store put "colour of pears" green
check_example "" embedded_store put "colour of plums" blue
check_example "" embedded_store put crates 2
check_example green embedded_store get "colour of pears"
check_example $'colour of pears=green\ncolour of plums=blue' embedded_store list colour
check_example "" embedded_store erase "colour of plums"
check_example "colour of pears=green" embedded_store list colour
check_example "360: 2 2 2 3 3 5" durable_cache 360
check_example $'360: 2 2 2 3 3 5 (cached)\n97: 97' durable_cache 360 97
for counts in "21 22 23 0 1440" "45 46 47 0 2880" "69 70 71 1440 2880"; do
  read -r first second third erased left <<<"$counts"
  check_example "hour $first: 31 degrees
hour $second: 32 degrees
hour $third: 33 degrees
$erased erased, $left left" time_series
done

say "find_package refuses a version that is not there"
sed 's/find_package(perdix 0.1/find_package(perdix 99.0/' "$outside/CMakeLists.txt" \
  >"$work/CMakeLists.txt"
if cmake -S "$work" -B "$work/refused" -DCMAKE_PREFIX_PATH="$prefix" >"$work/refused.log" 2>&1; then
  fail "find_package(perdix 99.0) succeeded"
fi
grep -q '0\.1\.' "$work/refused.log" || fail "the refusal does not name the version that is there"

say "pkg-config"
pc=$(find "$prefix" -name perdix.pc -printf '%h')
# pkg-config escapes the spaces of the paths for a shell.
eval "flags=($(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs perdix))"
export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(dirname -- "$pc")
if ((quick)); then exit 0; fi
"$CXX" -std=c++20 "$outside/main.cc" -o "$work/outside-pkg-config" "${flags[@]}"
check_runs "$work/outside-pkg-config"

say "a program has the engines only that it uses, or all if it opens indexes by name"
for program in one by_name; do
  "$CXX" -std=c++20 "$outside/$program.cc" -o "$work/$program" "${flags[@]}"
  check_runs "$work/$program"
done
if ((one_by_one)); then
  for engine in $engines; do
    has_engine "$work/by_name" "$engine" || fail "by_name lacks the engine $engine"
    if [[ $engine == sptree ]]; then continue; fi
    ! has_engine "$work/one" "$engine" || fail "one has the engine $engine, which it doesn't use"
  done

  say "a program leaves an index alone whose engine it doesn't have"
  [[ $("$work/one" "$work/by_name.pool") == "two crates of pears" ]] ||
    fail "one can't work beside it"
  answer=$("$work/one" "$work/by_name.pool" stock) && fail "one dropped it"
  [[ $answer == *"cceh"*"doesn't have"* ]] || fail "one said: $answer"
  check_runs "$work/by_name"
fi

say "passed"
