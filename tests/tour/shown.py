"""Runs every command that a page shows with its output, and compares.

A block ```console has commands behind `$ `, each followed by lines of its output. A line `...` stands for any lines, `...` within a
line for any characters: times and memory differ between computers. `cargo run --release --` is `nandscape`, which must be on the path.
A command whose block is marked ```console no-run is not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def shown(page):
    """The commands of a page, each with its line and the output shown."""
    found, inside = [], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, line[2:], []))
        elif inside and found:
            found[-1][2].append(line.rstrip())
    return found


def pattern(lines):
    """The output as a pattern, without blank lines at its ends."""
    text = "\n".join(lines).strip("\n")
    parts = ["(?:.*\n)*?" if line == "..." else r".*".join(map(re.escape, line.split("..."))) + "\n" for line in text.split("\n")]
    return re.compile("".join(parts))


def main():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    ran = 0
    for page in pages:
        for number, command, lines in shown(page):
            command = command.replace("cargo run --release --", "nandscape").removeprefix("cargo run -r -- ")
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, check=False)
            where = f"{page.relative_to(ROOT)}:{number}: {command}"
            output = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).split("\n")).strip("\n") + "\n"
            if lines and not pattern(lines).fullmatch(output):
                sys.exit(f"{where}\nprints something else than the page shows:\n{output}")
            if done.returncode not in (0, 1):
                sys.exit(f"{where}\nexits with {done.returncode}:\n{output}")
            ran += 1
    print(f"{ran} commands of pages print what the pages show")
    if ran == 0:
        sys.exit("no page shows a command")


main()
