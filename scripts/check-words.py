#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Words that the library does not use any more do not come back.

The list has a replacement for each.  A word also counts as a part of an identifier (go_near, quiesce__helper_poke),
in code, comments and documentation.  A line that needs one, because another project uses it, contains a word of ALLOWED.
"""
import pathlib
import re
import subprocess
import sys

RETIRED = {  # a regular expression for the word: what to write
    r"patience": "wait policy", r"hast(?:e|y|iest)": "urgency", r"hurr(?:y|ied|ies)": "force readers to yield; expedite",
    r"wish(?:es)?": "hint; request", r"pok(?:e|es|ed)": "wake", r"rous(?:e|ed|es)": "wake", r"kicks?": "schedule; wake",
    r"make_fit": "reinitialise", r"unask": "cancel", r"tenants?": "owner", r"beds?": "hashed wait queue", r"lie_down": "prepare to wait",
    r"go_near": "cache the slot", r"slot_elsewhere": "no slot",
    r"naps?": "sleep", r"doz(?:e|es|ed|ing)": "idle", r"resize_turn": "resize step",
    r"crowd(?:ed)?": "contended", r"anonymous(?= guard)": "fallback guard", r"rungs?": "stage", r"twins?": "exported wrapper; negative control",
}
ALLOWED = ("call_rcu_hurry",)
WHERE = ("src/", "include/", "kernel/", "docs/", "examples/", "liburcu/", "tools/", "tests/", "cases/", "rust/", "scripts/", ".ci/",
         "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
LISTS = ("scripts/check-words.py", "scripts/check-voice.py")  # these name words to find them


LETTERS = re.compile("[a-z]+")


def retired_words():
    """The words of the list alone, of letters; and the texts of the others, which have more than letters."""
    alone = [word for word in RETIRED if "_" not in word and "=" not in word]
    return re.compile("|".join(alone)), [re.sub(r"\(\?=(.*)\)", r"\1", word) for word in RETIRED if word not in alone]


def has_retired(text, alone, others):
    """Whether a text may have a word of the list: one search of each line for all of them takes ten times as long."""
    low = text.lower()
    return any(map(alone.fullmatch, set(LETTERS.findall(low)))) or any(other in low for other in others)


def problems(root):
    alone, others = retired_words()
    retired = re.compile("|".join(f"(?P<w{i}>(?<![A-Za-z]){word}(?![A-Za-z]))" for i, word in enumerate(RETIRED)), re.I)
    instead = list(RETIRED.values())
    files = subprocess.run(["git", "-C", root, "ls-files", *WHERE], capture_output=True, text=True, check=False).stdout.split()
    if not files:  # an archive without a history
        files = [str(p.relative_to(root)) for w in WHERE for p in sorted((root / w).rglob("*") if w.endswith("/") else [root / w])]
    for name in files:
        path = root / name
        if not path.is_file() or path.suffix in (".png", ".pyc", ".lock") or name in LISTS:
            continue
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.split("\n") if has_retired(text, alone, others) else (), 1):
            found = retired.search(line)
            if found and not any(word in line for word in ALLOWED):
                yield f"{name}:{number}: '{found.group()}': write {instead[int(found.lastgroup[1:])]}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad = list(problems(root))
    print("\n".join(bad + [f"check-words: {len(bad)} problems"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
