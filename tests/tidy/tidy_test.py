#!/usr/bin/env python3
"""Tests the tidy rules: each plants a violation in a small clean tree and expects that finding and
no other; or plants something that only looks like one and expects none."""

import tempfile
import unittest
import unittest.mock
from pathlib import Path

import tidy
from source import Source

CLEAN = {
    "CMakeLists.txt": "project(clean)\n",
    "include/perdix/error.h": "// Errors.\n#pragma once\n#include <string>\n",
    "include/perdix/pool.h": "// A pool.\n#pragma once\n#include <perdix/error.h>\n",
    "include/perdix/perdix.h": "// All.\n#pragma once\n#include <perdix/pool.h>\n",
    "include/perdix/aaa.h": "// Index A.\n#pragma once\n#include <perdix/pool.h>\n",
    "README.md": "# Clean\n",
    "src/error.cc": "#include <perdix/error.h>\n",
    "src/util/hash.h": "// Hashes.\n#pragma once\n",
    "src/pm/persist.h": '// Flushes.\n#pragma once\n#include "util/hash.h"\n',
    "src/pm/flush.cc": "#include <libpmem2.h>\nvoid f(void* p) { _mm_clwb(p); }\n",
    "src/pool/pool.h": '// Pools.\n#pragma once\n#include "pm/persist.h"\n',
    "src/index/common/codec.h": '// Words.\n#pragma once\n#include "pool/pool.h"\n',
    "src/index/aaa/aaa.h": '// Index A.\n#pragma once\n#include "index/common/codec.h"\n',
    "src/index/bbb/bbb.h": '// Index B.\n#pragma once\n#include "pool/pool.h"\n',
    "src/index/factory.cc": '#include "index/aaa/aaa.h"\n#include <perdix/perdix.h>\n',
    "src/index/aaa/layout.h": (
        "// Layout.\n#pragma once\nnamespace n {\n"
        "struct alignas(64) Leaf {\n  struct Pair { int a; };\n};\n"
        "static_assert(sizeof(Leaf) == 64);\nstatic_assert(sizeof(Leaf::Pair) == 4);\n}\n"
    ),
}


def function_of(lines, head="int f()"):
    return f"{head} {{\n" + "  g();\n" * (lines - 2) + "}\n"


class TidyTest(unittest.TestCase):
    def findings(self, planted):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, text in {**CLEAN, **planted}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            return [(path, line, rule) for path, line, rule, _ in tidy.check(root)[0]]

    def expect(self, rule, path, text, *lines):
        with self.subTest(rule=rule, text=text):
            self.assertEqual(self.findings({path: text}), [(path, line, rule) for line in lines])

    def expect_clean(self, path, text):
        self.expect("none", path, text)

    def test_clean_tree(self):
        self.assertEqual(self.findings({}), [])

    def test_every_rule_is_tested(self):
        text = Path(__file__).read_text(encoding="utf-8")
        for rule in {**tidy.RULES, **tidy.TREE_RULES}:
            self.assertIn(f'"{rule}"', text)

    def test_include_direction(self):
        rule = "include-direction"
        self.expect(rule, "src/util/up.cc", '#include "pm/persist.h"\n', 1)
        self.expect(rule, "src/pm/up.cc", '#include "util/hash.h"\n#include "pool/pool.h"\n', 2)
        self.expect(rule, "src/pm/up.cc", "#include <perdix/pool.h>\n", 1)
        self.expect(rule, "src/index/aaa/other.cc", '#include "index/bbb/bbb.h"\n', 1)
        self.expect(rule, "src/index/bbb/other.cc", "#include <perdix/aaa.h>\n", 1)
        self.expect(rule, "src/index/common/up.cc", '#include "index/aaa/aaa.h"\n', 1)
        self.expect(rule, "src/index/aaa/up.cc", '#include "index/all.h"\n', 1)
        self.expect(rule, "src/pool/near.cc", '#include "pool.h"\n', 1)
        self.expect(rule, "src/loose.cc", '#include "util/hash.h"\n', 1)
        self.expect(rule, "src/unknown/new.cc", '#include "util/hash.h"\n', 1)
        self.expect(rule, "src/pm/test_test.cc", '#include "pool/pool.h"\n', 1)
        self.expect_clean("src/util/down.cc", '// #include "pm/persist.h"\n')
        self.expect_clean("src/pm/down.cc", "#include <perdix/error.h>\n")
        self.expect_clean("src/index/aaa/aaa.cc", '#include "index/aaa/aaa.h"\n')
        self.expect_clean("tests/all.cc", '#include "index/aaa/aaa.h"\n#include "all.h"\n')

    def test_flushes_only_in_pm(self):
        rule = "flushes-only-in-pm"
        self.expect(rule, "src/pool/a.cc", "void f(void* p) {\n  _mm_clflushopt(p);\n}\n", 2)
        self.expect(rule, "src/pool/a.cc", "void f() { _mm_sfence(); }\n", 1)
        self.expect(rule, "src/pool/a.cc", "void f() { _mm_stream_si64(p, 1); }\n", 1)
        self.expect(rule, "src/pool/a.cc", "void f() { msync(p, 1, MS_SYNC); }\n", 1)
        self.expect(rule, "src/pool/a.cc", 'void f() { asm volatile("clwb (%0)"); }\n', 1)
        self.expect(rule, "bench/a.cc", "void f() { pmem2_get_flush_fn(map)(p, 1); }\n", 1)
        self.expect(rule, "tools/a.cc", "#include <libpmem2.h>\n", 1)
        self.expect_clean("src/pool/a.cc", '// clwb(p) then sfence()\nauto* s = "msync()";\n')
        self.expect_clean("src/pool/a.cc", "auto i = FlushInstruction::clwb;\n")

    def test_public_includes(self):
        rule = "public-includes"
        for header in ("<fmt/core.h>", '"perdix/pool.h"', "<unistd.h>", '"pm/persist.h"'):
            text = f"// A.\n#pragma once\n#include {header}\n"
            self.expect(rule, "include/perdix/a.h", text, 3)

    def test_plugins_use_the_public_api(self):
        rule = "plugins-use-the-public-api"
        for header in ('"util/hash.h"', '"plugins/none.h"', "<fmt/core.h>", '"perdix/pool.h"'):
            self.expect(rule, "plugins/a.h", f"// A.\n#pragma once\n#include {header}\n", 3)
        header = "// A.\n#pragma once\n#include <atomic>\n#include <perdix/pool.h>\n"
        plugin = {"plugins/a.h": header, "plugins/a.cc": '#include "plugins/a.h"\n'}
        self.assertEqual(self.findings(plugin), [])
        test = {"src/pool/a_test.cc": '#include "plugins/a.h"\n'}
        self.assertEqual(self.findings(plugin | test), [])
        self.expect("include-direction", "src/pool/a.cc", '#include "plugins/a.h"\n', 1)

    def test_own_header_first(self):
        rule = "own-header-first"
        own, other = '#include "pool/pool.h"\n', "#include <string>\n"
        self.expect_clean("src/pool/pool.cc", own + other)
        self.expect(rule, "src/pool/pool.cc", other + own, 1)
        self.expect_clean("src/pool/other.cc", other + own)

    def test_instrumentation_only_in_pm(self):
        text = "#ifdef PERDIX_" + "INSTRUMENTED\n#endif\n"
        self.expect("instrumentation-only-in-pm", "src/pool/a.cc", text, 1)
        self.expect("instrumentation-only-in-pm", "tests/a.cc", text, 1)
        self.expect_clean("src/pm/a.cc", text)

    def test_file_length(self):
        self.expect("file-length", "src/pool/a.cc", "int a;\n" * 701, 701)
        self.expect_clean("src/pool/a.cc", "int a;\n" * 700)

    def test_function_length(self):
        rule = "function-length"
        path = "src/pool/a.cc"
        self.expect_clean(path, function_of(60))
        self.expect(rule, path, function_of(61), 1)
        heads = [
            "template <class T = std::less<int>>\nauto C<T>::f(T a) const noexcept -> T",
            "C::C(int a) : a_(a), b_{a}, c_{{a}, {b}}",
            "C::C(int a) noexcept : b_{a}",
            "bool operator==(A a, B b)",
            "void f(Options o = {}, int b = 1)",
            "struct X f(int a)",
            "TEST(Suite, Case)",
            "auto f = [](int a)",
        ]
        for head in heads:
            self.expect_clean(path, function_of(60 - head.count("\n"), head))
            self.expect(rule, path, "int x;\n" + function_of(61, head), 2)

    def test_function_length_inside_of_scopes(self):
        rule = "function-length"
        path = "src/pool/a.cc"
        inner = "namespace a::b {\nenum E { x, y };\nclass alignas(64) C : D<int> {\n public:\n"
        self.expect(rule, path, inner + function_of(61, "  C(int a) : a_{a}") + "};\n}\n", 5)
        self.expect(rule, path, 'extern "C" {\n' + function_of(61) + "}\n", 2)
        self.expect_clean(path, inner + function_of(30) * 20 + "};\n}\n")
        self.expect_clean(path, "constexpr int kTable[] = {\n" + "  1,\n" * 99 + "};\n")
        self.expect_clean(path, "const auto kTable = make({\n" + "  1,\n" * 99 + "});\n")
        self.expect_clean(path, "struct C {\n" + "  int f();\n" * 99 + "};\n")
        body = 'int f() {\n  g("}", \'}\', R"({})", 1\'000); /* } */  // }\n'
        self.expect(rule, path, body + "  g();\n" * 59 + "}\n", 1)
        conditional = "int f() {\n#if A(\\\n{)\n  if (a) {\n#endif\n"
        self.expect(rule, path, conditional + "  g();\n" * 57 + "}}\n", 1)

    def test_finished(self):
        self.expect("finished", "src/pool/a.cc", "int a;  // TO" + "DO: more\n", 1)
        self.expect("finished", "cmake/a.cmake", "# FIX" + "ME\n", 1)
        self.expect_clean("src/pool/a.cc", "int XXH3, TO" + "DOS;\n")

    def test_plain_lines(self):
        rule = "plain-lines"
        self.expect(rule, "src/pool/a.cc", "\tint a;\n", 1)
        self.expect(rule, "src/pool/a.cc", "int a; \n", 1)
        self.expect(rule, "src/pool/a.cc", "// " + "x" * 98 + "\n", 1)
        self.expect(rule, "src/pool/a.cc", "int a;", 1)
        self.expect(rule, "scripts/run", "#!/bin/sh\n\ttrue\n", 2)
        self.expect_clean("src/pool/a.cc", "// " + "ä" * 97 + "\n")

    def test_header_top(self):
        self.expect("header-top", "src/pool/a.h", "#pragma once\n", 1)
        self.expect("header-top", "src/pool/a.h", "// A.\nint a();\n", 1)
        self.expect_clean("src/pool/a.h", "/* A. */\n#pragma once\n")

    def test_doc_comments_stand_alone(self):
        rule, path = "doc-comments-stand-alone", "tests/a.cc"
        self.expect(rule, path, "/// The same for b.\nint f();\n", 1)
        self.expect(rule, path, "/// A.\nint f();\n  /// The same for\n  /// The same b.\n", 3)
        self.expect(rule, path, "int a;  ///< A.\nint b;  ///< The same of b.\n", 2)
        self.expect(rule, path, "/// A.\nint b;  ///< The same of b.\n", 2)
        self.expect_clean(path, "/// Both are alike.\n/// The same holds for c.\nint f();\n")
        self.expect_clean(path, "// The same for b.\nint f();  /// The sameness.\n")
        self.expect_clean(path, 'auto a = R"(\n/// The same)";\n')

    def test_library_manners(self):
        rule = "library-manners"
        calls = ("std::exit(1)", "_exit(1)", "abort()", 'printf("a")', "std::cout << 1")
        for call in calls:
            self.expect(rule, "src/pool/a.cc", f"void f() {{\n  {call};\n}}\n", 2)
        header = "// A.\n#pragma once\ninline void f() { abort(); }\n"
        self.expect(rule, "include/perdix/a.h", header, 3)
        self.expect_clean("src/pool/a.cc", "void f() { t.abort(); on_exit(1); snprintf(b); }\n")
        self.expect_clean("src/pool/a_test.cc", "void f() { _exit(1); }\n")
        self.expect_clean("tools/a.cc", "void f() { std::cout << 1; }\n")

    def test_persists_have_reasons(self):
        rule = "persists-have-reasons"
        far = "// Because.\nint a;\nint b;\nint c;\n"
        for call in ("pm.flush(p, 1)", "pool_->pm().fence()", "pm->persist(p, 1)", "publish(w, 1)"):
            self.expect(rule, "src/pool/a.cc", f"void f() {{\n  {call};\n}}\n", 2)
            self.expect(rule, "src/pool/a.cc", f"{far}  {call};\n", 5)
            self.expect_clean("src/pool/a.cc", f"{far[:-7]}  {call};\n")
            self.expect_clean("src/pool/a.cc", f"void f() {{\n  {call};  // because\n}}\n")
            self.expect_clean("src/pool/a_test.cc", f"void f() {{\n  {call};\n}}\n")
        self.expect_clean("src/pool/a.cc", "std::atomic_thread_fence(x);\nvoid flush(int);\n")

    def test_layouts_assert_sizes(self):
        rule = "layouts-assert-sizes"
        path = "src/pool/layout.h"
        top = "// Layout.\n#pragma once\n"
        self.expect(rule, path, top + "struct A {\n  int a;\n};\n", 3)
        self.expect(rule, path, top + "struct A { int a; };\nstatic_assert(sizeof(B) == 4);\n", 3)
        asserted = "struct A;\nstruct B { int a; };\nstatic_assert(sizeof(B) == 4);\n"
        self.expect_clean(path, top + asserted)

    def test_document_lines(self):
        rule = "document-lines"
        long = "word " * 20 + "end"
        self.expect(rule, "README.md", f"{long}\n", 1)
        self.expect(rule, "docs/a.md", f"# A\n\n- {long}\n", 3)
        self.expect(rule, "bindings/a/README.md", f"```\n```\n{long}\n", 3)
        self.expect_clean("docs/a.md", f"```\n{long}\n```\n")
        self.expect_clean("docs/a.md", f"  | {long} |\n")
        self.expect_clean("docs/a.md", "- https://example.org/" + "a" * 100 + "\n")
        self.expect_clean("docs/a.md", "word\n" * 800)

    def test_papers_by_name(self):
        rule = "papers-by-name"
        name = "nbtree.t" + "xt"
        self.expect(rule, "src/pool/a.cc", f"// See {name}, IV-B.\n", 1)
        self.expect(rule, "docs/a.md", f"A ({name}).\n", 1)
        self.expect_clean("docs/a.md", "`CMakeLists.txt` and NBTree, section IV-B.\n")

    def test_named_paths(self):
        rule = "named-paths"
        for named in ("`src/pool/away.h`", "`src/away/`", "`away.cc`", "`pool/away.h`",
                      "`scripts/away --all`", "`tests/away_*.py`", "[a](away.md)",
                      "[a](../src/away)", "[a](#away)", "[a](../README.md#away)"):
            self.expect(rule, "docs/a.md", f"# A\n\nSee {named}.\n", 3)
        self.expect(rule, "src/pool/a.cc", "// See docs/away.md.\n", 1)
        text = ("`src/pool/pool.h`, `pool/pool.h`, `pool.h`, `src/index/`, `src/pool/*.h`,\n"
                "`src/<engine>/`, `<engine>.h`, `build/a/tests/a.py`, `a/b`, `put.get`,\n"
                "[a](../src/pool), [a](#a-b-and-c), [a](https://example.org/a.md)\n\n"
                "## A `b`, and c\n\n```sh\nsrc/away [a](away.md)\n```\n")
        self.expect_clean("docs/a.md", text)
        self.expect_clean("src/pool/a.cc", '// pool/away.h\n#include "pool/pool.h"\n')

    def test_tests_wait_for_states(self):
        rule = "tests-wait-for-states"
        for call in ("std::this_thread::sleep_for(1ms);", "::usleep(1);", "sleep(1);",
                     "changed.wait_for(lock, 1ms, f);", "future.wait_until(end);",
                     "while (!done) std::this_thread::yield();",
                     "while (n < 2) { std::this_thread::yield(); }"):
            for path in ("src/pool/a_test.cc", "src/pool/test_a.h", "tests/a/a.cc",
                         "src/testing/a.cc", "tools/a/a_test.cc", "bench/a/a_test.cc"):
                self.expect(rule, path, f"// A.\n#pragma once\nvoid f() {{\n  {call}\n}}\n", 4)
            self.expect_clean("tests/storm/a.cc", f"void f() {{\n  {call}\n}}\n")
            self.expect_clean("src/pool/a.cc", f"void f() {{\n  {call}\n}}\n")
        self.expect(rule, "tests/a/a_test.py", "import time\n\ntime.sl" + "eep(1)\n", 3)
        self.expect_clean("tests/tool/tool_test.py", "time.sl" + "eep(1)\n")
        self.expect_clean("tests/a/a.cc", "// sleep_for(1)\nvoid f() { core.wait_for_growth(); }\n")

    def test_tests_have_their_own_folders(self):
        rule = "tests-have-their-own-folders"
        for folder in ("/dev/shm", "/tmp"):
            for path in ("src/pool/a_test.cc", "tests/a/a.cc", "tests/a/a.c.cc"):
                self.expect(rule, path, f'auto a = "{folder}/a.pool";\n', 1)
            self.expect(rule, "tests/a/a_test.py", f'a = "{folder}"\n', 1)
            self.expect_clean("src/pool/a.cc", f'auto a = "{folder}/a.pool";\n')
            self.expect_clean("src/util/test_directory.h",
                              f'// A.\n#pragma once\nauto a = "{folder}";\n')
        self.expect_clean("tests/a/a.cc", 'auto a = "/tmpfs/a", b = "a/tmp";\n')

    def test_each_exception_is_needed(self):
        root = Path(__file__).resolve().parents[2]
        for places, rule in ((tidy.WAITS, tidy.tests_wait_for_states),
                             (tidy.SHARED_FOLDERS, tidy.tests_have_their_own_folders)):
            needed = dict(places)
            with unittest.mock.patch.dict(places, clear=True):
                findings = [path for path in tidy.files(root) for _ in rule(Source(root, path))]
            for place in needed:
                self.assertTrue(any(path.startswith(place) for path in findings), place)

    def test_classes_are_small(self):
        rule = "classes-are-small"
        path = "src/pool/big.h"

        def class_of(*declarations, head="class Big", times=1):
            body = "\n".join(declarations * times)
            return f"// Big.\n#pragma once\n{head} {{\n{body}\n}};\n"

        one_each = (
            "int a_ = f(1, {2});", "const std::array<int, 3> b_{1, 2};", "friend class Other;",
            "void f(int a = 1) const;", "int g() const noexcept { return a_ < 1 ? h() : 2; }",
            "template <class T = int>\n  auto h(T t) -> decltype(t) {\n    if (t) { t(); }\n  }",
            "struct alignas(64) Inner {\n    int a;\n    void f() {}\n  };",
            "enum class E { a, b };",
            "Big() : a_{1}, b_(2) {}", "bool operator==(const Big&) const = default;",
            "bool operator()(int) { return true; }", "using A = B<int>;",
            "std::function<void(int)> call_ = [](int) { f(); };", "virtual ~Big() = 0;",
        )
        for declaration in one_each:
            self.expect(rule, path, class_of(declaration, times=41), 3)
            self.expect_clean(path, class_of(declaration, times=40))
        self.expect(rule, path, class_of(*one_each, times=3), 3)
        hidden = ("private:", *["int a;"] * 41)
        self.expect(rule, path, class_of(*hidden, head="struct Big"), 3)
        self.expect(rule, path, class_of("class In {", *hidden, "};"), 4)
        self.expect_clean(path, class_of(*["int a;"] * 41, head="struct Big"))
        self.expect_clean(path, class_of("public:", *["int a;"] * 41))
        self.expect_clean("src/pool/big_test.cc", class_of("int a;", times=41))

    def test_big_classes_only_shrink(self):
        rule, path = "classes-are-small", "src/pool/big.h"
        with unittest.mock.patch.dict(tidy.BIG_CLASSES, {path: {"Big": 50}}):
            for count, findings in ((51, 1), (50, 0), (41, 0), (40, 1)):
                text = "// Big.\n#pragma once\nclass Big {\n" + "int a;\n" * count + "};\n"
                self.expect(rule, path, text, *[3] * findings)
            self.expect(rule, path, "// Big.\n#pragma once\nclass Other {};\n", 1)

    def test_parts_do_not_point_back(self):
        rule = "parts-do-not-point-back"
        back = '// A part.\n#pragma once\n#include "index/aaa/aaa.h"\n'
        self.expect(rule, "src/index/aaa/part.h", back, 3)
        self.expect(rule, "src/index/aaa/part.cc", back.replace("#pragma once", ""), 3)
        self.expect_clean("src/index/aaa/test_part.h", back)
        for name in ("api.cc", "aaa.cc", "part_test.cc"):
            self.expect_clean(f"src/index/aaa/{name}", '#include "index/aaa/aaa.h"\n')
        self.expect_clean("src/index/all.h", back)
        with unittest.mock.patch.dict(tidy.PARTS_THAT_POINT_BACK, {"aaa": "other.h part.h"}):
            self.expect_clean("src/index/aaa/part.h", back)

    def test_parts_that_point_back_do(self):
        root = Path(tidy.__file__).resolve().parents[2]
        needed = [f"{e}/{part}" for e, all_of in tidy.PARTS_THAT_POINT_BACK.items()
                  for part in all_of.split()]
        with unittest.mock.patch.dict(tidy.PARTS_THAT_POINT_BACK, clear=True):
            for part in needed:
                source = Source(root, f"src/index/{part}")
                self.assertTrue(list(tidy.parts_do_not_point_back(source)), part)

    def test_class_names_are_rare(self):
        rule = "class-names-are-rare"

        def in_namespaces(definition, *namespaces):
            return {
                f"src/pool/n{number}.cc": f"namespace a::{namespace} {{\n{definition}\n}}\n"
                for number, namespace in enumerate(namespaces)
            }

        three = ("b", "c", "d")
        for definition in (
            "class Session {};",
            "struct alignas(64) Session : Base {};",
            "template <class T> class Session<std::vector<T>> {};",
            "namespace { class Session { void f() {} }; }",
        ):
            with self.subTest(definition=definition):
                found = [(path, 2, rule) for path in in_namespaces(definition, *three)]
                self.assertEqual(self.findings(in_namespaces(definition, *three)), found)
                self.assertEqual(self.findings(in_namespaces(definition, "b", "c", "b")), [])
        for definition in (
            "class Session;",
            "class Tree { class Session {}; };",
            "enum class Session { open };",
            "struct Leaf {};",
            "void f() { struct Session {}; }",
            "// class Session {};",
        ):
            with self.subTest(definition=definition):
                self.assertEqual(self.findings(in_namespaces(definition, *three)), [])
        tests = {f"tests/n{n}.cc": f"namespace {n} {{ class Session {{}}; }}\n" for n in three}
        self.assertEqual(self.findings(tests), [])


if __name__ == "__main__":
    unittest.main()
