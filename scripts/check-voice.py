#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The voice of comments and documentation: agents are nouns, acts are the field's verbs, sentences stand alone.

usage: check-voice.py [ROOT] [--list [DIRECTORY [RULE]]] [--update]

Faults are counted by directory, two levels deep.  scripts/voice.list allows a directory the faults that it had when the rule was made, and a number there
only goes down: the check fails when a directory has more than its number, or fewer, and --update then lowers the number.  A directory without
a number has none of a fault, and fragments in at most FRAGMENTS of its comments.  --list prints each fault with its place.

Text between quotation marks or backticks quotes a message or code and is exempt, and so are labels that other checks read
("Relaxed:", "RU1: pairs with"), headings, and people: users and programmers are persons, who may be called "who".
"""
import pathlib
import re
import sys

import comments
import csource

DIRECTORIES = ("src/", "include/", "tools/", "tests/", "kernel/", ".ci/", "docs/", "scripts/", "cases/", "README.md", "CONTRIBUTING.md")
TABLE = "scripts/voice.list"
FRAGMENTS = 0.02
NO_PROSE = ("tests/mutants.list", "tests/survivors.list", "tests/build/symbols.list", TABLE, "scripts/check-voice.py")

WORDS = {
    "who": (re.compile(r"(?<![@\w.>])(?:who|whoever|whom)(?![\w(\[=])", re.I), "name the agent: waiter, reader, caller, ..."),
    "nobody": (re.compile(r"\b(?:nobody|somebody|someone|everybody|anybody|no one)\b", re.I), "name the agent: no reader, a caller, each thread, ..."),
    "what": (re.compile(r"(?<!\w)(?:Who|What)\s+[a-z]"), "begin the sentence with a noun"),
    "look": (re.compile(r"\b(?:look(?:s|ed|ing)?\b(?!\s+(?:like|alike|(?:\w+\s+){0,2}up)\b)|(?:tells?|told|telling)\b(?!(?:\s+\w+){0,4}\s+(?:apart|from)\b))", re.I),
             "scan, check, load, test, report, notify, complete"),
    "start": (re.compile(r"\A\s*(?:of\s|and\s|[Aa]s above\b|[Tt]he same\s*[,.:;]|[Tt]he same\s*\Z)"), "say in full what the line before says"),
}
PEOPLE = re.compile(r"(?:users?|people|persons?|programmers?|authors?|engineers?|maintainers?|contributors?|anyone),?\s+\Z", re.I)
FRAGMENT = "fragment", "write a whole sentence that stands alone"

# A first word that needs the line before.
DEPENDENT = re.compile(r"\s*(?:and|or|but|nor|so|then|too|also|else|not|of|it|its|they|their|them|theirs|he|his|him|which|that is|likewise|dito|"
                       r"ditto|as above|the same|those(?= (?:that|of|with|who|which))|these(?=[,.:]| (?:that|have|are)\b)|such as)\b(?!-)", re.I)
# What other checks or compilers read, names of files and parts, drawings.
FORMAL = re.compile(r"\s*(?:SPDX|Relaxed\b|raw\b|[({\[]|[\w-]+(?: [A-Z./-]+)+: |private:|[A-Z]{2,4}\d*[a-z]?[:,]|-{2,}|={2,}|noqa|nolint|NOLINT|fallthrough|shellcheck|clang-format|pylint|@|#|"
                    r"[\w./-]+ [-:] |[\w./]+\Z|CONFIG_|defined\(|!|coverage|type:|namespace\b|extern\b)")
_AUXILIARY = """is are was were be been has have had do does did can cannot could may might must shall should will would let
    isn't aren't doesn't don't won't can't saw came went began took gave got fell ran wrote threw knew became"""
_VERBS = """abort accept access acquire add adopt advance affect agree align alloc allow allocate announce answer appear append apply arm arrive ask
    assert assign assume attach avoid await back become begin behave belong bind block boot bring build call cancel carry catch change charge
    check choose claim clean clear close collect combine come compare compile complete compute confirm consist consume contain continue
    convert copy correspond cost count cover crash create cross deal decide declare decrease decrement defer define deny delay delete deliver
    depend dequeue dereference derive describe destroy detach detect determine differ disable discard distinguish do drain drive drop end
    enable end enqueue ensure enter equal erase exceed exchange execute exercise exist exit expand expect explain expire export expose
    express fail fall fence fetch fill find finish fire fit flush follow forbid force forget fork form free gain get give go guard
    guarantee grow hand handle hang happen help hide hit hold identify ignore imitate imply include increase increment indicate inherit
    initialise insert install interpose interrupt invoke iterate join jump judge keep kill know lack land last lead learn leave lend lengthen let lie limit look
    link list listen live load lock lose lower make map mark match matter mean measure meet mention merge miss modify move name need nest
    notice notify obey observe occur offer omit open order outlive overflow overlap overtake overwrite own park pass pause pay permit pick pin
    place play point poll pop post precede precede preempt prepare prevent print proceed process produce prohibit promise protect
    prove provide publish pull push put queue quote race raise reach read receive reclaim recognise record recycle reduce refer refuse
    register reject rejoin relax release rely remain remember remove rename reopen repeat replace report represent request require reserve reset
    resize resolve restart restore resume retire retry return reuse reverse revive revoke run satisfy save say scan see seem select send
    separate serve set share shift shorten show shrink shut signal skip sleep spin splice split stand start starve stay step stop
    store straddle succeed suffice supply survive suspend sweep switch take tag tell terminate test throw time touch track translate traverse treat
    trust try turn understand undo unlink unlock unregister update upgrade use verify violate visit wait wake walk want warn
    watch widen win wish work wrap write yield"""
_BEFORE_NOUNS = re.compile(r"(?:an?|the|its?|their|his|each|every|no|any|some|this|that|these|those|of|by|in|on|at|with|without|from|for|between|"
                           r"after|before|during|per|one|two|three|four|both|many|several|more|first|second|last|next|other|another|own|"
                           r"same|single)\Z", re.I)


def _inflect(verb):
    yield verb
    if verb.endswith(("s", "x", "ch", "sh", "o")):
        yield verb + "es"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        yield verb[:-1] + "ies"
    else:
        yield verb + "s"


AUXILIARY = set(_AUXILIARY.split())
VERBS = {form for verb in _VERBS.split() for form in _inflect(verb)} - AUXILIARY


def has_verb(text):
    """True if a word of the text can only be a verb, or is one that no article, number or preposition makes a noun."""
    words = re.findall(r"[A-Za-z_\d']+|[^\sA-Za-z_\d']", text)
    for before, word in zip([""] + words, words):
        if word.lower() in AUXILIARY or (word.lower() in VERBS and not _BEFORE_NOUNS.match(before)):
            return True
    return False


def is_fragment(comment, identifiers):
    """True if a comment has no verb or needs the line before it; behind code a noun phrase is enough."""
    text = comment.text.strip()
    if comment.kind in ("paragraph", "cell") or not re.search(r"[a-z]{2}", text) or FORMAL.match(comment.raw.strip()):
        return False
    if DEPENDENT.match(text):
        return True
    if comment.kind == "trailing" or (comment.kind == "docstring" and re.match(r"[\w-]+(?: [\w-]+){0,3}: ", text)):
        return False  # a field's noun phrase; the title of a program
    first = re.match(r"[a-z][a-z]*(?![\w(.*/\[<>=-])", text)
    return bool(first and first.group() not in identifiers) or not has_verb(text)


def faults_of(comment, identifiers):
    """(rule, place, excerpt) of each fault."""
    for rule, (pattern, _) in WORDS.items():
        for match in pattern.finditer(comment.text):
            if rule == "who" and PEOPLE.search(comment.text[:match.start()]):
                continue
            start = max(match.start() - 20, 0)
            yield rule, comment.at(match.start()), " ".join(comment.text[start:match.end() + 40].split())
    if is_fragment(comment, identifiers):
        yield FRAGMENT[0], comment.at(0), " ".join(comment.text.split())[:70]


def directory_of(name):
    parts = name.split("/")[:-1]
    return "/".join(parts[:2]) or "."


def survey(root):
    """Faults by (directory, rule), and how many comments each directory has."""
    faults, sizes = {}, {}
    for name in csource.tracked(str(root), *DIRECTORIES):
        if name in NO_PROSE or name.endswith(".png"):
            continue
        directory, code = directory_of(name), ""
        if name.endswith(comments.C_LIKE):
            code = csource.strip((root / name).read_text(encoding="utf-8"))
        identifiers = set(re.findall(r"[A-Za-z_]\w*", code))
        for comment in comments.of_file(root, name):
            sizes[directory] = sizes.get(directory, 0) + (comment.kind not in ("paragraph", "cell"))
            for rule, place, excerpt in faults_of(comment, identifiers):
                faults.setdefault((directory, rule), []).append(f"{place}: {rule}: {excerpt}")
    return faults, sizes


def counts_of(faults, sizes):
    """What the table has to say: no row where there is no fault, or few enough fragments."""
    return {key: len(found) for key, found in sorted(faults.items())
            if key[1] != FRAGMENT[0] or len(found) > FRAGMENTS * sizes[key[0]]}


def read_table(path):
    if not path.exists():
        return None
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line.count("\t") == 2]
    return {(directory, rule): int(number) for directory, rule, number in rows}


def write_table(path, counts):
    head = "# SPDX-License-Identifier: MIT\n# Faults of the voice that a directory still has: directory, rule, number, by tabs.  See scripts/check-voice.py.\n"
    path.write_text(head + "".join(f"{directory}\t{rule}\t{number}\n" for (directory, rule), number in sorted(counts.items())), encoding="utf-8")


def compare(faults, counts, allowed):
    """One line for each number that is not the table's; where it has risen, all places that may be the new one."""
    for key in sorted(set(counts) | set(allowed)):
        directory, rule = key
        now, most = counts.get(key, 0), allowed.get(key, 0)
        if now > most:
            yield from faults[key]
            yield f"{directory}: {rule}: {now}, at most {most}: {WORDS.get(rule, FRAGMENT)[1]}"
        elif now < most:
            yield f"{directory}: {rule}: {now}, {TABLE} allows {most}: lower it with --update"


def main():
    arguments = sys.argv[1:]
    root = pathlib.Path(arguments.pop(0) if arguments and not arguments[0].startswith("--") else ".").resolve()
    faults, sizes = survey(root)
    counts, allowed = counts_of(faults, sizes), read_table(root / TABLE)
    if arguments[:1] == ["--list"]:
        wanted = arguments[1:]
        for (directory, rule), found in sorted(faults.items()):
            if (not wanted or wanted[0] in ("all", directory)) and (len(wanted) < 2 or wanted[1] == rule):
                print("\n".join(found))
        return 0
    if arguments == ["--update"]:
        write_table(root / TABLE, counts if allowed is None else {k: min(n, allowed[k]) for k, n in counts.items() if k in allowed})
        allowed = read_table(root / TABLE)
    bad = list(compare(faults, counts, allowed or {}))
    print("\n".join(bad + [f"check-voice: {len(bad)} problems; {sum(counts.values())} faults in {sum(sizes.values())} comments are still allowed"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
