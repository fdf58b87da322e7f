"""Finds statements in C++ sources by their brackets. What it looks at is the code alone: comments
and the contents of strings are blanked, and all positions are those of the text."""

import functools
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tidy"))
from source import Source, code_of as scanned

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CONTROL = re.compile(r"\b(if constexpr|if|for|while|switch)\s*$")
# What may stand before the brace of a block: the end of a head or of a statement. Before the brace
# of an initializer there is a name, an operator or another bracket.
_BLOCK_HEAD = re.compile(
    r"(?:[;{}):\]]|\b(?:else|do|try|const|noexcept|override|final|mutable)|->[\w\s:<>*&]+)\s*$"
)
_LABEL = re.compile(r"\s*(?:case\b[^;{}?]*?[^:]:(?!:)|default\s*:)")
_SPACE = re.compile(r"\s*")


class Misfit(Exception):
    """Why a change does not fit a source."""


code_of = functools.lru_cache(maxsize=None)(scanned)


@functools.lru_cache(maxsize=None)
def _squeezed(code):
    """The code without white space, and the position of each of its characters."""
    positions = [at for at, mark in enumerate(code) if not mark.isspace()]
    return "".join(code[at] for at in positions), positions


def place_of(code, anchor, after=""):
    """The position of the anchor: of the only one, or of the first behind the only `after`. White
    space does not count."""
    squeezed, positions = _squeezed(code)
    behind = 0
    for piece, once in ((after, True), (anchor, not after)):
        wanted = "".join(piece.split())
        count = squeezed.count(wanted, behind)
        if wanted and (count == 0 or (once and count > 1)):
            raise Misfit(f"{piece!r} is there {count} times")
        behind = squeezed.find(wanted, behind)
    return positions[behind]


@functools.lru_cache(maxsize=None)
def brackets(code):
    """The positions of the brackets of the code, from each to its partner."""
    partner, stack = {}, []
    for match in re.finditer(r"[][(){}]", code):
        if match[0] in _CLOSING:
            stack.append(match.start())
        elif stack and _CLOSING[code[stack[-1]]] == match[0]:
            partner[stack[-1]] = match.start()
            partner[match.start()] = stack.pop()
    return partner


def is_balanced(text):
    """Whether each bracket of the text has its partner there."""
    code = code_of(text)
    return len(brackets(code)) == len(re.findall(r"[][(){}]", code))


def block_around(code, at):
    """The position after the brace of the block that has a position."""
    partner = brackets(code)
    while at > 0:
        at -= 1
        if code[at] in ")]}":
            at = partner.get(at, at)
        elif code[at] == "{" and _BLOCK_HEAD.search(code, max(0, at - 200), at):
            return at + 1
    return 0


def end_of_statement(code, at):
    """The position behind the statement that begins at a position."""
    partner = brackets(code)
    while at < len(code):
        mark = code[at]
        if mark == ";":
            return at + 1
        if mark in "([{":
            closing = partner.get(at, at)
            behind = _SPACE.match(code, closing + 1).end()
            is_block = mark == "{" and _BLOCK_HEAD.search(code, max(0, at - 200), at)
            if is_block and not re.compile(r"else\b|[;,)(]").match(code, behind):
                return closing + 1
            at = closing
        at += 1
    raise Misfit("the statement has no end")


def statement_around(code, at):
    """The places [begin, end) of the statement that has a position: the innermost one, but with the
    `if` or the loop whose body it is without braces."""
    begin = end = block_around(code, at)
    while end <= at:
        begin = _SPACE.match(code, end).end()
        if label := _LABEL.match(code, begin):
            begin = _SPACE.match(code, label.end()).end()
        end = end_of_statement(code, begin)
    return begin, end


def begins_statement(code, at):
    """Whether a statement may begin at a position, judged by what is before it."""
    before = code[:at].rstrip()
    if re.search(r"[;{}:]$|\b(?:else|do)$", before):
        return _is_in_block(code, at)
    opening = brackets(code).get(len(before) - 1) if before.endswith(")") else None
    return opening is not None and _CONTROL.search(before[:opening]) is not None


def _is_in_block(code, at):
    """Whether the innermost bracket around a position is a brace."""
    partner = brackets(code)
    while at > 0:
        at -= 1
        if code[at] in ")]}":
            at = partner.get(at, at)
        elif code[at] in _CLOSING:
            return code[at] == "{"
    return True
