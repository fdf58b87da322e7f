#!/usr/bin/env python3
"""docs/reproduction.md and scripts/reproduction know the same commands: each one in the document
is a step, in the same form but for its sizes, or the document says why it is none."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"# step: (\S+)")
_NO_STEP = re.compile(r"# no step: \S")


def load_script():
    path = str(ROOT / "scripts/reproduction")
    loader = importlib.machinery.SourceFileLoader("reproduction", path)
    spec = importlib.util.spec_from_loader("reproduction", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def commands_in(text: str):
    """Of each command in a document: the line before it, and the command. Builds are left out."""
    for block in _BLOCK.findall(text):
        before = ""
        for line in block.replace("\\\n", " ").splitlines():
            if line and not line.startswith(("#", "scripts/", "make ")):
                yield before, line
            before = line


def form_of(script, text: str) -> tuple:
    """A command without its sizes: the program, and its options in any order."""
    command = script.split(text)
    options, words = set(), command.words[1:]
    for before, word in zip(["", *words], words):
        if word in script.SIZES or before in script.SIZES and not word.startswith("--"):
            continue
        options.add((before, word) if before.startswith("--") else ("", word))
    return command.program, tuple(sorted(command.environment)), tuple(sorted(options))


def problems_of(script, text: str) -> list[str]:
    problems, seen = [], set()
    for before, line in commands_in(text):
        line = line.partition("  #")[0]
        step = _STEP.fullmatch(before)
        if step is None:
            if not _NO_STEP.match(before):
                problems.append(f"neither '# step:' nor '# no step:' before: {line}")
            continue
        seen.add(step[1])
        if step[1] not in script.STEPS:
            problems.append(f"no step '{step[1]}' for: {line}")
        elif form_of(script, line) != form_of(script, script.STEPS[step[1]].command):
            problems.append(f"step '{step[1]}' is not: {line}")
    problems += [f"the document does not name step '{name}'"
                 for name in script.STEPS if name not in seen]
    return problems


def check_the_check(script) -> list[str]:
    """What the test must find, and must let pass."""
    name, (_, command) = next(iter(script.STEPS.items()))
    other_size = command.replace("--records 1M", "--records 7M")
    cases = {
        f"# step: {name}\n{other_size}": True,
        f"# no step: it takes a day\n{command}": True,
        command: False,
        f"# step: nosuch\n{command}": False,
        f"# step: {name}\n{command} --threads 2": False,
    }
    wrong = []
    for text, right in cases.items():
        found = [p for p in problems_of(script, f"```sh\n{text}\n```\n")
                 if not p.startswith("the document")]
        if (not found) != right:
            wrong.append(f"the check says {found} of: {text}")
    return wrong


def check_script(script) -> list[str]:
    """What can be told of the script without a build."""
    wrong = []
    for sizes, times, expected in (("1M,500k", 2, "2000000,1000000"), ("300", 0.5, "150"),
                                   ("1M", 1, "1M"), ("bytes", 3, "bytes")):
        if script.multiplied(sizes, times) != expected:
            wrong.append(f"{sizes} times {times} is {script.multiplied(sizes, times)}")
    makefiles = "\n".join(path.read_text() for folder in ("bench", "src", "tests", "tools")
                          for path in (ROOT / folder).rglob("CMakeLists.txt"))
    for name, (_, command) in script.STEPS.items():
        _, target = script.target_of(script.split(command).program)
        if not re.search(rf"\b{target}\b", makefiles):
            wrong.append(f"step '{name}' needs a target '{target}' that nothing makes")
    listed = subprocess.run([sys.executable, ROOT / "scripts/reproduction", "--list"],
                            capture_output=True, text=True, check=True).stdout.splitlines()
    if [line for line in listed if not line.startswith(" ")] != list(script.STEPS):
        wrong.append("--list does not name all steps")
    return wrong


def check_resumption(script) -> list[str]:
    """A step is made again if its program, its figure file or its options are others, if it failed,
    and if it is asked for."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="perdix-reproduction-test-") as scratch:
        folder = pathlib.Path(scratch)
        script.ROOT = script.RESULTS = script.FIGURES = folder
        script.STEPS = {"step": script.Step(60, "tool figure mine --records 1k")}
        program, runs, figures = folder / "tool", folder / "runs", folder / "mine.toml"
        figures.write_text("title = 'one'")

        def program_is(text):
            program.write_text(f"#!/bin/sh\necho $* >>{runs}\n{text}\n")
            program.chmod(0o755)

        def expect(number, what, times=1, again=False):
            script.digest_of.cache_clear()
            command = script.with_times(script.split(f"{program} figure mine --records 1k"), times)
            with open("/dev/null", "w") as sys.stdout:
                made = script.run_all({"step": command}, 60, again)
            sys.stdout = sys.__stdout__
            seen = len(runs.read_text().splitlines())
            if seen != number:
                wrong.append(f"{what}: the step was made {seen} times, not {number}")
            return made

        program_is("exit 0")
        expect(1, "nothing was made before")
        if expect(1, "all is the same").kept != ["step"]:
            wrong.append("a step that was made before is not said to be kept")
        expect(2, "other options", times=2)
        expect(3, "again", times=2, again=True)
        figures.write_text("title = 'two'")
        expect(4, "another figure file", times=2)
        program_is("exit 1")
        if not expect(5, "another program", times=2).failed:
            wrong.append("a step that failed is not said to have failed")
        expect(6, "a step that failed", times=2)
        program_is("exit 0")
        expect(7, "the program is mended", times=2)
        (folder / "step.done").write_text("what an older script has left")
        expect(8, "a record that can't be read", times=2)
    return wrong


def check_stops(script) -> list[str]:
    """A second run is refused, also while a program that a killed run has left goes on; a program
    that takes too long is asked to stop, and its step is not done."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="perdix-reproduction-test-") as scratch:
        folder = pathlib.Path(scratch)
        script.ROOT = script.RESULTS = folder
        program, asked = folder / "tool", folder / "asked"
        program.write_text(f"#!/bin/sh\ntrap 'echo >{asked}; exit 3' TERM\n"
                           "while :; do sleep 0.01; done\n")
        program.chmod(0o755)
        lock = script.take_turn()
        problem = script.run("step", script.split(str(program)), 0.5)
        if "stopped" not in problem or not asked.exists():
            wrong.append(f"a program that takes too long: '{problem}'")
        if script.record_of("step").exists():
            wrong.append("a step that was stopped is said to be done")

        def refused():
            try:
                script.take_turn().close()
            except SystemExit:
                return True
            return False

        left = subprocess.Popen([program], close_fds=False)
        if not refused():
            wrong.append("a second run is not refused")
        lock.close()
        if not refused():
            wrong.append("a run is not refused while another one's program goes on")
        left.terminate()
        left.wait()
        if refused():
            wrong.append("a run is refused after the end of the others")
    return wrong


def main() -> int:
    sys.dont_write_bytecode = True
    script = load_script()
    document = (ROOT / "docs/reproduction.md").read_text()
    problems = check_the_check(script) + check_script(script) + problems_of(script, document)
    steps = len(script.STEPS)
    problems += check_resumption(script) + check_stops(script)
    print("\n".join(problems) or f"{steps} steps")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
