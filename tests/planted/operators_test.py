#!/usr/bin/env python3
"""Tests the operators of planted bugs: which statement an anchor finds, what is no statement."""

import unittest

from bug import edited
from plant import declares
from statement import Misfit, begins_statement, code_of, place_of, statement_around

SOURCE = """namespace n {
template <class K>
void Tree<K>::put(Leaf& leaf, Key key) {
  const auto add = [&](const Pair& pair) {
    pm().fence();  // before the commit; really
    commit(pair);
  };
  if (leaf.full())
    for (const Pair& pair : leaf.pairs()) add(pair);
  pm().publish(leaf.bitmap,
               bitmap_of(Slot{key}, [&](unsigned slot) { return free(slot); }));
  switch (leaf.kind) {
    case Kind::small:
      shrink(leaf);
  }
  if (leaf.empty()) {
    drop(leaf);
  } else {
    keep("keep; it", leaf);
  }
}

bool Tree<K>::get(Leaf& leaf) const {
  pm().fence();
  return leaf.full() && valid(leaf);
}
}
"""


def found(anchor, after=""):
    """The statement of an anchor, on one line."""
    code = code_of(SOURCE)
    begin, end = statement_around(code, place_of(code, anchor, after))
    return " ".join(SOURCE[begin:end].split())


class AnchorTest(unittest.TestCase):
    def test_is_found_over_lines_and_brackets(self):
        self.assertTrue(found("pm().publish(leaf.bitmap, bitmap_of").endswith("free(slot); }));"))
        self.assertEqual(found("return free"), "return free(slot);")

    def test_takes_a_head_without_braces_along(self):
        whole = "if (leaf.full()) for (const Pair& pair : leaf.pairs()) add(pair);"
        self.assertEqual(found("add(pair)"), whole)

    def test_takes_both_branches(self):
        whole = 'if (leaf.empty()) { drop(leaf); } else { keep("keep; it", leaf); }'
        self.assertEqual(found("if (leaf.empty())"), whole)
        self.assertEqual(found("drop(leaf)"), "drop(leaf);")
        self.assertEqual(found('keep("'), 'keep("keep; it", leaf);')

    def test_is_inside_of_a_lambda_or_is_the_statement_with_it(self):
        self.assertEqual(found("commit(pair)"), "commit(pair);")
        self.assertTrue(found("const auto add").endswith("commit(pair); };"))

    def test_leaves_a_label(self):
        self.assertEqual(found("shrink"), "shrink(leaf);")

    def test_must_be_there_once(self):
        for anchor, after in (("pm().fence()", ""), ("absent", ""), ("shrink", "leaf")):
            with self.assertRaises(Misfit):
                found(anchor, after)

    def test_may_be_the_first_behind_a_piece(self):
        self.assertEqual(found("pm().fence()", "::get("), "pm().fence();")

    def test_is_not_in_a_comment(self):
        with self.assertRaises(Misfit):
            found("really")


class EditTest(unittest.TestCase):
    def test_piece_is_there_once_and_only_its_statement_changes(self):
        before, after = edited(SOURCE, "pm().fence()", "::get(", lambda statement: "")
        self.assertEqual(SOURCE.count(before), 1)
        self.assertEqual(SOURCE.replace(before, after).count("pm().fence();"), 1)
        self.assertIn("pm().fence();  // before", SOURCE.replace(before, after))

    def test_does_not_care_how_lines_are_wrapped(self):
        wrapped = SOURCE.replace("    for (const", "for (const").replace("full())", "\n    full())")
        _, after = edited(wrapped, "if (leaf.full())", "", lambda statement: "")
        self.assertEqual(after, "")


class StatementTest(unittest.TestCase):
    def begins(self, piece):
        return begins_statement(code_of(SOURCE), SOURCE.index(piece))

    def test_begins_after_another_a_brace_or_a_head(self):
        for piece in ("pm().fence();  //", "commit(pair)", "for (", "shrink", "keep("):
            self.assertTrue(self.begins(piece), piece)

    def test_does_not_begin_within_a_call(self):
        for piece in ("bitmap_of", "Slot{", "&& valid"):
            self.assertFalse(self.begins(piece), piece)

    def test_declarations(self):
        self.assertTrue(declares("  const Slot slot = slots.first();\n"))
        self.assertFalse(declares("  slot = slots.first();\n"))


if __name__ == "__main__":
    unittest.main()
