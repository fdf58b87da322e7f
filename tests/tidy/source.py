"""A file as the tidy rules see it: its lines, its code without comments and strings, its
includes and its functions. The C++ is scanned, not parsed; what the scanner can't tell is noted."""

import re
from pathlib import Path

_TOKEN = re.compile(
    r"""(?P<comment> //[^\n]*(?:(?<=\\)\n[^\n]*)* | /\*.*?\*/ )
      | (?P<raw> \bR"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)" )
      | (?P<string> "(?:\\.|[^"\\\n])*" )
      | (?P<character> (?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )""",
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def _blank(text):
    """Spaces instead of everything but line ends, so that positions stay what they were."""
    return re.sub(r"[^\n]", " ", text)


def code_of(text):
    """The text with comments and the contents of strings blanked; directives are still there."""

    def blanked(match):
        return _blank(match[0]) if match["comment"] else '"' + _blank(match[0][1:-1]) + '"'

    return _TOKEN.sub(blanked, text)


class Source:
    """One file. `path` is relative to the root of the repository and uses '/'."""

    def __init__(self, root: Path, path: str):
        self.root = root
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.splitlines()
        self.is_header = path.endswith(".h")
        self.is_document = path.endswith(".md")
        self.is_cxx = path.endswith((".h", ".cc"))
        if self.is_cxx:
            self._scan()

    def _scan(self):
        self.comment_lines = set()

        def without_comments(match):
            if not match["comment"]:
                return match[0]
            first = self.line_of(match.start())
            self.comment_lines.update(range(first, first + match[0].count("\n") + 1))
            return _blank(match[0])

        uncommented = _TOKEN.sub(without_comments, self.text)
        self.includes = [
            (self.line_of(m.start(1)), m[1] == '"', m[2]) for m in _INCLUDE.finditer(uncommented)
        ]
        self.code = code_of(self.text)

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    def text_lines(self):
        """(number, line) of each line of a document that is in no block of code."""
        in_block = False
        for number, line in enumerate(self.lines, 1):
            if line.lstrip().startswith("```"):
                in_block = not in_block
            elif not in_block:
                yield number, line

    def find(self, pattern):
        """(line, match) of each occurrence of a compiled pattern in the code."""
        for match in pattern.finditer(self.code):
            yield self.line_of(match.start()), match

    def functions(self):
        """(name, first line, last line) of each function with a body, outermost ones only."""
        for kind, head, start, end, _ in self._braces():
            if kind == "function":
                yield _name(head), self.line_of(start), self.line_of(end)

    def classes(self):
        """(namespace, name, line) of each class and struct that is defined in a namespace and not
        in another class. Unnamed namespaces do not count."""
        for kind, head, start, _, outer in self._braces():
            defined = _CLASS.match(_without_template_prefix(head)) if kind == "scope" else None
            scopes = [_NAMESPACE.match(scope) for scope in outer]
            if defined and all(scopes):
                names = [scope[1] for scope in scopes if scope[1]]
                yield "::".join(names), defined[1], self.line_of(start)

    def private_declarations(self):
        """(name, line, how many declarations are in its sections that are not public) of each class
        and struct, also those in others, which count as one declaration there."""
        code = _DIRECTIVE.sub(lambda m: _blank(m[0]), self.code)
        for kind, head, start, end, _ in self._braces():
            defined = _CLASS.match(_without_template_prefix(head)) if kind == "scope" else None
            if defined:
                body = code[start + len(head) - _ACCESS.match(head).end() + 1 : end]
                yield defined[1], self.line_of(start), _private_in(body, "class" in defined[0])

    def _braces(self):
        return _braces(_DIRECTIVE.sub(lambda m: _blank(m[0]), self.code))


# --- Declarations ---------------------------------------------------------------------------------

_NESTED = re.compile(r"\([^(){}]*\)|\{[^(){}]*\}")
_NOT_PARAMETERS = re.compile(r"\b(?:alignas|noexcept|requires|explicit)\s*\01")
_PREFIX = re.compile(r"\btemplate\s*<[^;\02]*?>(?=\s)")
_SECTION = re.compile(r"\b(public|protected|private)\s*:(?!:)")
# Of a flat body: `;`, or the body of a function: behind a list of parameters and not in a list of
# what a constructor initialises.
_END = re.compile(r"[^=;]*?\01[^=;]*?\02(?!\s*[,\02])|[^;]*;")


def _private_in(body, is_class):
    """How many declarations the body of a class has outside of its public sections."""
    flat = re.sub(r"\boperator\s*[^\w\s]+?(?=\s*\()", "operator", body)
    found = 1
    while found:
        flat, found = _NESTED.subn(lambda m: "\01" if m[0][0] == "(" else "\02", flat)
    flat = _PREFIX.sub("", _NOT_PARAMETERS.sub("", flat))
    sections = _SECTION.split(flat)
    count = len(_END.findall(sections[0])) if is_class else 0
    for access, section in zip(sections[1::2], sections[2::2]):
        count += len(_END.findall(section)) if access != "public" else 0
    return count


# --- Functions ------------------------------------------------------------------------------------
#
# A brace outside of functions opens a scope (namespace, class, enum), a function body or an
# initialiser. The text before it, back to the last ';' or '}' or opening brace of a scope, tells
# which.

_SCOPE = re.compile(
    r"^(?:(?:inline|typedef|static|constexpr)\s+)*(namespace|class|struct|union|enum)\b"
)
_NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\b\s*([\w:]*)")
_CLASS = re.compile(
    r"\s*(?:class|struct)\s+(?:alignas\s*\([^()]*(?:\([^()]*\))?\)\s*|\[\[.*?\]\]\s*)*(\w+)"
)
_ACCESS = re.compile(r"\s*(?:(?:public|private|protected)\s*:(?!:)\s*)*")
_INIT_LIST = re.compile(r"\)\s*(?:noexcept\s*(?:\([^()]*\))?\s*)?:(?!:)")
_LAMBDA = re.compile(r"=\s*\[[^\]]*\]\s*(?:\(|$|mutable|<)")


def _braces(code):
    """(kind, head, position of the head, position of the closing brace, heads of the scopes around)
    of each pair of braces; kind is scope, function (outermost ones only) or block."""
    stack = []  # (kind, head, position of the head)
    head_at = 0
    parens = 0
    for match in re.finditer(r"[{}();]", code):
        mark, at = match[0], match.start()
        in_body = any(kind != "scope" for kind, _, _ in stack)
        if mark == "{":
            head = code[head_at:at]
            kind = "block" if in_body or parens else _kind(head)
            stack.append((kind, head, head_at + _ACCESS.match(head).end()))
            if kind == "scope":
                head_at = at + 1
        elif mark == "}":
            kind, head, start = stack.pop() if stack else ("scope", "", at)
            yield kind, head, start, at, [scope for _, scope, _ in stack]
            if kind != "block":
                head_at = at + 1
        elif not in_body:
            parens += {"(": 1, ")": -1}.get(mark, 0)
            if mark == ";" and parens == 0:
                head_at = at + 1


def _kind(head):
    """What a brace after `head` opens: a scope, a function, or a block that is neither."""
    head = _ACCESS.sub("", head, count=1)
    head = re.sub(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)", " ", head)
    head = _without_template_prefix(head).strip()
    if head.startswith("extern") and head.endswith('"'):
        return "scope"
    if _SCOPE.match(head) and not re.search(r"\)\s*(?:const|noexcept|override|final|\s)*$", head):
        return "scope"
    if _LAMBDA.search(head):
        return "function"
    before_parenthesis = head.split("(", 1)[0]
    if "(" not in head or re.search(r"(?<!operator)(?<![=<>!])=(?!=)\s*\S*$", before_parenthesis):
        return "block"
    if _INIT_LIST.search(head) and re.search(r"[\w>]$", head):
        return "block"  # a member initialised with braces in a constructor's list
    return "function"


def _without_template_prefix(head):
    match = re.match(r"\s*template\s*<", head)
    while match:
        depth, at = 1, match.end()
        while at < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
        match = re.match(r"\s*template\s*<", head)
    return head


def _name(head):
    match = re.search(r"(operator\s*\S+?|~?\w+(?:::~?\w+)*)\s*\(", _without_template_prefix(head))
    if not match:
        return "lambda"
    if match[1].startswith("TEST") or match[1].startswith("TYPED_TEST"):
        return " ".join(head[match.start() :].split())
    return match[1]
