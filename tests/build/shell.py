#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tool's manual pages and completions: a page for each subcommand, with each of its options, of which mandoc approves; the words
that the shells offer.

    shell.py --tool TOOL --pages DIR --completion DIR
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tap import Tap, execute

# Each key is a command line as bash divides it; its value has some of the words that the shells offer then.
TYPED = {
    ("re",): {"refscale", "retirescale", "report"},
    ("refscale", "--re"): {"--readers="},
    ("refscale", "--js"): {"--json"},
    ("refscale", "--type", "=", "rc"): {"rcu", "rcu_call"},
    ("refscale", "--type", "=", "rcu,haz"): {"rcu,hazptr", "rcu,hazptr_alloc"},
    ("rcuscale", "--scenario", "="): {"idle", "held", "others"},
    ("rwscale", "--scenario", "=", "sparse,d"): {"sparse,dense"},
    ("torture", "--fence", "=", "l"): {"light"},
    ("hashscale", "--base", "=", "spin"): {"spinlock"},
    ("hashscale", "--distribution", "=", "z"): {"zipf"},
    ("costs", "--pairs", "="): {"all"},
    ("study", "to"): {"toggle"},
    ("study", "a"): {"all"},
}


def unescaped(page):
    return re.sub(r"\\f.", "", page).replace("\\-", "-").replace("\\&", "")


def check_pages(tap, tool, pages):
    names = re.findall(r"^  ([a-z]\w*) ", execute([tool, "--help"]).stdout, re.M)
    tap.result(len(names) > 10, "the tool has subcommands", names)
    for name in names:
        page = pages / f"quiesce-{name}.1"
        text = unescaped(page.read_text(encoding="utf-8")) if page.exists() else ""
        help_text = execute([tool, name, "--help"], env={"ARGP_HELP_FMT": "rmargin=9999"}).stdout
        options = re.findall(r"^ +(?:-\S, )?(--[a-z-]+=?)", help_text, re.M)
        missing = [option for option in options if f"\n{option}" not in text and f", {option}" not in text]
        tap.result(len(options) > 4 and not missing, f"the page of {name} has its options", missing or page)
        tap.result(f"quiesce-{name}" in unescaped((pages / "quiesce.1").read_text(encoding="utf-8")), f"quiesce(1) names the page of {name}")
    if not shutil.which("mandoc"):
        tap.skip("mandoc finds nothing", "there is no mandoc")
        return
    files = sorted(pages.glob("quiesce*.1"))
    done = execute(["mandoc", "-T", "lint", "-W", "style", *files])
    # Pages that refer to each other are not installed here.
    faults = [line for line in (done.stdout + done.stderr).splitlines() if ".1:" in line and "referenced manual not found" not in line]
    tap.result(len(files) > len(names) and not faults, "mandoc finds nothing", "\n".join(faults))


def offered_by_bash(script, tool, words):
    """The words that the completion function offers for the last one of @words."""
    code = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quiesce; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return set(execute(["bash", "-c", code, "bash", tool, *words]).stdout.split())


def offered_by_fish(script, tool, words):
    line = "quiesce " + " ".join(words).replace(" = ", "=").removesuffix(" =") + ("=" if words[-1] == "=" else "")
    done = execute(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                   env={"PATH": f"{tool.parent}:{os.environ['PATH']}", "HOME": "/nonexistent"})
    option = line.rpartition(" ")[2].partition("=")[0] + "=" if "=" in line else ""
    return {row.split("\t")[0].removeprefix(option) for row in done.stdout.splitlines()}


def offered_by_zsh(script, tool, words):
    """The words that the function adds; zsh itself would drop those that do not fit."""
    code = """compadd() { [[ $1 = -a ]] && print -l -- ${(P)2} || print -l -- $@ }; _describe() { print -l -- ${rows%%:*} }; _files() { }
              compset() { [[ $PREFIX = ${~2}* ]] && PREFIX=${PREFIX##${~2}} }
              script=$1; shift; words=("$@"); CURRENT=$#; PREFIX=$words[-1]; source $script"""
    rows = execute(["zsh", "-fc", code, "zsh", script, tool, *words[:1], *(["".join(words[1:])] if words[1:] else [])]).stdout.split()
    last = "" if words[-1] == "=" else words[-1]
    return {last[:last.rfind(",") + 1] + row for row in rows if row.startswith(last.rpartition(",")[2])}


def check_completion(tap, tool, folder):
    for shell, script, offered in (("bash", "quiesce.bash", offered_by_bash), ("fish", "quiesce.fish", offered_by_fish), ("zsh", "_quiesce", offered_by_zsh)):
        if not shutil.which(shell):
            tap.skip(f"completion for {shell}", f"there is no {shell}")
            continue
        tap.run(f"{shell} can read its completion", [shell, "-n", folder / script])
        for words, want in TYPED.items():
            found = offered(folder / script, tool, words)
            strange = {word for word in found if not word.startswith(words[-1] if words[-1] != "=" else "")}
            tap.result(want <= found and not strange, f"{shell} completes: {' '.join(words)}", f"found {sorted(found)}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("tool", "pages", "completion"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    options = parser.parse_args()
    tap = Tap()
    check_pages(tap, options.tool, options.pages)
    check_completion(tap, options.tool, options.completion)
    return tap.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as error:
        sys.exit(str(error))
