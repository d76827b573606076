#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Manual pages of section 3 from the public headers: a page for each header and one for each documented call.

	call-manual.py [--html] --include DIR --version VERSION --date DATE [--depfile FILE] OUT

OUT is a directory, which is made anew.  A comment that begins with "name - summary" or "name, other - summary" documents these, and
the declarations that follow it, up to an empty line or the next comment: the first one names the page, the others are links to it.  The
page of a macro that defines functions has the signature of each of them, from the macro's body.  In the comment

	@arg: ...               describes an argument
	Context: Cost: ...      begin sections; the words are those of SECTIONS
	a line after a tab      is code

The pages are mdoc(7).  With --html they are translated by mandoc(1), and OUT has an index.
Exit status: 0; 1 a comment documents nothing; 77 there is no mandoc.
"""
import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

SECTIONS = {"Context": "CALLING CONTEXT", "Cost": "COST", "Return": "RETURN VALUES", "Misuse": "MISUSE", "Orders": "ORDERING", "Source": "SOURCE"}
TAKEN = {"LIST_HEAD"}  # pages of that name are in the C library's manual, for <sys/queue.h>
ORDER = ["CALLING CONTEXT", "COST", "RETURN VALUES", "ORDERING", "MISUSE", "SOURCE"]
BLOCK = re.compile(r"^/\*\* (\w+(?:, \w+)*)(?:\([^)\n]*\))? - (.*?)\*/\n", re.S | re.M)
HEAD = re.compile(r"/\* (quiesce/[\w/.]+) - (.*?)\*/", re.S)
QUALIFIERS = re.compile(r"__attribute__\s*\(\(.*?\)\)(?!\))|\b(?:QUIESCE_\w+|static|inline|extern|__extension__)\b(?:\([^()]*\))?\s*")


# ---- the headers ----

def unstarred(text):
    """The lines of a comment, without the stars in front."""
    lines = text.rstrip().split("\n")
    return [lines[0]] + [re.sub(r"^ \*\s?", "", line, count=1) if not line.startswith(" *\t") else line[2:] for line in lines[1:]]


def declared(text):
    """(name, prototype) of what TEXT begins with; None: nothing that has a name."""
    macro = re.match(r"#\s*define\s+(\w+)(\([^)]*\))?", text)
    if macro:
        return macro[1], macro[1] + (macro[2] or "")
    typedef = re.match(r"typedef\s.*?(\w+);", text)
    if typedef:
        return typedef[1], typedef[1]
    head = re.split(r"[{;]", text, maxsplit=1)[0]
    head = " ".join(QUALIFIERS.sub(" ", head).split())
    found = re.search(r"(\w+)\s*\(", head)
    return (found[1], head) if found else None


def declarations(text):
    """What follows a comment, up to an empty line or a comment: [(name, prototype)], each name once."""
    text = text.replace("\\\n", " ")
    text = re.split(r"\n\s*\n|^\s*/\*", text, maxsplit=1, flags=re.M)[0]
    found, depth = {}, 0
    for line in text.split("\n"):
        start = depth == 0 and line and not line[0].isspace() and not re.match(r"#\s*(?!define)|[}{]", line)
        got = declared(text[text.index(line):]) if start else None
        if got and not got[0].startswith("quiesce__"):
            found.setdefault(*got)
        depth += line.count("{") - line.count("}")
    return list(found.items())


def prototype(text, name):
    """Of the first declaration of NAME in TEXT."""
    line = re.search(rf"^(?=\S)[^\n]*\b{name}\b[^\n]*", text.replace("\\\n", " "), re.M)
    got = declared(line[0]) if line else None
    return got[1] if got and got[0] == name else None


# ---- macros that define functions ----

def macros_of(text):
    """{name: (parameters, body)} of the macros with arguments; of two definitions the last one, which is that of C."""
    text = re.sub(r"/\*.*?\*/", " ", text.replace("\\\n", " "), flags=re.S)
    return {name: ([p.strip() for p in parameters.split(",")], body.strip())
            for name, parameters, body in re.findall(r"^\s*#\s*define\s+(\w+)\(([^)]*)\)([^\n]*)", text, re.M)}


def invocation(text, macros):
    """(start, end, name, arguments) of the first invocation of a macro in TEXT, or None."""
    for found in re.finditer(r"\b(\w+)\s*\(", text):
        if found[1] not in macros:
            continue
        depth, arguments = 1, [""]
        for end in range(found.end(), len(text)):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if depth == 0:
                return found.start(), end + 1, found[1], [a.strip() for a in arguments]
            if text[end] == "," and depth == 1:
                arguments.append("")
            else:
                arguments[-1] += text[end]
    return None


def substituted(macro, arguments):
    """Return the body with ARGUMENTS in place of the parameters, and with each ##."""
    values = dict(zip(macro[0], arguments))
    return re.sub(r"\w+", lambda word: values.get(word[0], word[0]), macro[1])


def expanded(text, macros):
    got = invocation(text, macros)
    if not got:
        return text
    start, end, name, arguments = got
    inner = expanded(substituted(macros[name], arguments), {other: what for other, what in macros.items() if other != name})
    return text[:start] + inner + expanded(text[end:], macros)


def heads(text):
    """Return the declarations at file scope, without bodies and initialisers."""
    depth, kept = 0, ""
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        kept += ";" if char in "{}" else char if depth == 0 else ""
    return [head.strip() for head in kept.split(";") if head.strip()]


def generated(name, macros):
    """[(name, prototype)] of the functions and objects that macro NAME defines, whose names are made by ##."""
    body, rest = name + "()", dict(macros)
    while (got := invocation(body, rest)) and got[:2] == (0, len(body)):  # a macro that only invokes another one
        macro = rest.pop(got[2])
        body = substituted(macro, macro[0] if got[2] == name else got[3])
    pasted = {a + b for a, b in re.findall(r"(\w+)\s*##\s*(\w+)", body)}
    found = []
    for head in heads(re.sub(r"\s*##\s*", "", body)):
        head = expanded(head, rest)
        data = re.match(r"(.*\b(\w+))\s*=$", " ".join(QUALIFIERS.sub(" ", head).split()))
        got = (data[2], data[1]) if data else declared(head)
        if got and got[0] in pasted:
            found.append((got[0], re.sub(r"\* (?=\w+[,)])", "*", got[1])))
    return found


class Call:
    def __init__(self, header, name, comment, what, functions):
        self.header, self.name, self.comment, self.declared, self.functions = header, name, comment, what, functions
        lines = unstarred(comment)
        self.summary = lines.pop(0)
        while lines and re.match(r"\s*[^@\s]", lines[0]) and not re.search(r"[.:?]$", self.summary):
            self.summary += " " + lines.pop(0).strip()
        self.lines = lines


class Header:
    def __init__(self, include, path, macros):
        self.path, text = str(path.relative_to(include)), path.read_text(encoding="utf-8")
        head = HEAD.search(text)
        self.summary, _, rest = "\n".join(unstarred(head[2] if head else "")).partition("\n")
        self.lines, self.calls, self.wrong = rest.split("\n"), [], []
        self.page = "quiesce-" + path.stem
        for block in BLOCK.finditer(text):
            names, below = block[1].split(", "), text[block.end():]
            what = dict(declarations(below)) | {name: got for name in names for got in [prototype(below, name)] if got}
            where = f"{self.path}:{text.count(chr(10), 0, block.start()) + 1}"
            what |= {name: name for name in names if name.isupper() and name not in what}  # for the program to define
            self.wrong += [f"{where}: {name} is not declared below its comment" for name in names if name not in what]
            declared_here = [(name, what[name]) for name in dict.fromkeys(names + list(what)) if name in what]
            self.calls.append(Call(self, names[0], block[2], declared_here, [f for name, _ in declared_here for f in generated(name, macros)]))


# ---- mdoc ----

class Writer:
    def __init__(self, known, own):
        self.known, self.own, self.out = known, own, []

    def macro(self, text):
        self.out.append(text)

    def word(self, word):
        """A macro line for a call that has a page, or None."""
        call = re.fullmatch(r"([(\"]*)(\w+)\(\)('s)?([.,;:)\"]*)", word)
        if not call:
            return None
        before = f"Pf {call[1]} " if call[1] else ""
        markup = f"Xr {call[2]} 3" if call[2] in self.known and call[2] != self.own else f"Fn {call[2]}"
        if call[3]:
            return f".{before}{markup} Ns 's{call[4]}"
        return f".{before}{markup}" + "".join(" " + c for c in call[4])

    def text(self, text):
        """One paragraph: each sentence and each macro begins a line."""
        line = []
        for word in text.split():
            macro = self.word(word)
            if macro:
                self.flush(line)
                self.out.append(macro.replace('"', "\\(dq"))
                continue
            line.append(re.sub(r"@(\w+)", r"\\fI\1\\fR", word.replace("\\", "\\e")))
            if re.search(r"[.:?!][)\"]?$", word):
                self.flush(line)
        self.flush(line)

    def flush(self, words):
        for line in textwrap.wrap(" ".join(words), 78, break_long_words=False, break_on_hyphens=False):
            self.out.append(("\\&" if line[:1] in (".", "'") else "") + line)
        words.clear()

    def body(self, lines):
        """Paragraphs, lists of dashes, and lines that stay as they are."""
        pending, literal, bullets = [], [], False
        lines = [*lines, ""]

        def paragraph():
            if pending:
                self.text(" ".join(pending))
                pending.clear()

        for number, line in enumerate(lines):
            code = line.startswith(("\t", "    ")) or (line.startswith("  ") and (literal or re.search(r"\S {3,}\S", line)))
            if literal and not code and line.strip() == "" and number + 1 < len(lines) and lines[number + 1].startswith(("\t", "   ")):
                literal.append("")
                continue
            if code and not bullets:
                paragraph()
                literal.append(line)
                continue
            if literal:
                self.literal(literal)
                literal.clear()
                if line.strip():
                    self.macro(".Pp")
            if line.startswith("- "):
                paragraph()
                if not bullets:
                    self.macro(".Bl -bullet -compact")
                bullets = True
                self.macro(".It")
                pending.append(line[2:])
            elif line.strip():
                pending.append(line.strip())
            else:
                paragraph()
                if bullets:
                    self.macro(".El")
                    bullets = False
                if any(rest.strip() for rest in lines[number + 1:]) and self.out and not self.out[-1].startswith((".Sh", ".Pp")) \
                        and not lines[number + 1].startswith(("\t", "   ")):  # a list or an example brings its own space
                    self.macro(".Pp")

    def literal(self, lines):
        if self.out[-1] == ".Pp":
            self.out.pop()
        self.macro(".Bd -literal -offset indent")
        for line in lines:
            line = line.expandtabs(8).rstrip()
            self.out.append(("\\&" if line[:1] in (".", "'") else "") + line.replace("\\", "\\e"))
        self.macro(".Ed")


def begin(writer, page, summary, date):
    writer.macro(f".Dd {date}")
    writer.macro(f".Dt {page.upper()} 3")
    writer.macro(".Os")
    writer.macro(".Sh NAME")
    writer.macro(f".Nm {page}")
    summary = re.sub(r"@(\w+)", r"\1", re.split(r"(?<=[^.])\.(?:\s|$)", summary, maxsplit=1)[0]).rstrip(".,:;?")
    writer.macro(f".Nd {summary}")


def synopsis(writer, call):
    writer.macro(".Sh SYNOPSIS")
    writer.macro(f".In {call.header.path}")
    for name, prototype in call.declared + call.functions:
        macro = re.fullmatch(r"\w+(?:\((.*)\))?", prototype)
        if macro and macro[1] is None:
            writer.macro(f".Dv {name}")
            continue
        if "(" not in prototype:
            writer.macro(f".Vt {prototype}")
            continue
        result, _, arguments = prototype.rpartition(name + "(") if macro is None else ("", "", macro[1] + ")")
        if result.strip():
            writer.macro(f".Ft {result.strip()}")
        writer.macro(f".Fo {name}")
        for argument in re.split(r",\s*(?![^()]*\))", arguments.strip()[:-1]):
            if argument:
                writer.macro(f'.Fa "{argument}"')
        writer.macro(".Fc")


def parts(call):
    """(description, arguments {name: lines}, sections {title: lines}) of a comment's text."""
    rest = re.split(r"(?<=[^.])\.\s+", call.summary, maxsplit=1)
    lines = ([rest[1]] if len(rest) == 2 and rest[1] else []) + call.lines
    description, arguments, sections = [], {}, {}
    target = description
    for line in lines:
        pieces = re.split(r"(?:(?<=^)|(?<=\.  )|(?<=\. )|(?<=; ))(?=(?:" + "|".join(SECTIONS) + r"): |@\w+: )", line)
        for piece in pieces:
            section, argument = re.match(rf"({'|'.join(SECTIONS)}): +(.*)", piece), re.match(r"@(\w+): +(.*)", piece)
            if argument:
                target = arguments.setdefault(argument[1], [])
                piece = argument[2]
            elif section:
                target = sections.setdefault(SECTIONS[section[1]], [])
                piece = section[2]
            elif not piece.strip() and target is not description:
                target = description
            elif target is not description and not line.startswith(" ") and piece == line and re.search(r"[.:]$", target[-1]):
                target = description
            target.append(piece if target is description or piece.startswith("\t") else piece.strip())
    return description, arguments, sections


def call_page(call, known, date):
    writer = Writer(known, call.name)
    description, arguments, sections = parts(call)
    begin(writer, call.name, call.summary, date)
    synopsis(writer, call)
    writer.macro(".Sh DESCRIPTION")
    if arguments:
        writer.macro(".Bl -tag -width Ds")
        for name, lines in arguments.items():
            writer.macro(f".It Fa {name}")
            writer.body(lines)
        writer.macro(".El")
    if any(line.strip() for line in description):
        while description and not description[0].strip():
            description.pop(0)
        if arguments:
            writer.macro(".Pp")
        writer.body(description)
    elif not arguments:
        summary = call.summary[:1].upper() + call.summary[1:]
        writer.text(summary)
    for title in ORDER:
        if title in sections:
            writer.macro(f".Sh {title}")
            writer.body(sections[title])
    writer.macro(".Sh SEE ALSO")
    writer.macro(f".Xr {call.header.page} 3")
    return "\n".join(writer.out) + "\n"


def header_page(header, known, date):
    writer = Writer(known, header.page)
    begin(writer, header.page, header.summary, date)
    writer.macro(".Sh SYNOPSIS")
    writer.macro(f".In {header.path}")
    writer.macro(".Sh DESCRIPTION")
    while header.lines and not header.lines[0].strip():
        header.lines.pop(0)
    writer.body(header.lines or [header.summary])
    if header.calls:
        writer.macro(".Sh SEE ALSO")
        names = sorted({call.name for call in header.calls}, key=lambda name: (name.lower(), name))
        for name in names:
            writer.macro(f".Xr {name} 3" + (" ," if name != names[-1] else ""))
    return "\n".join(writer.out) + "\n"


# ---- the directory ----

def pages(headers, date):
    """({name: text}, {link: name})"""
    known = {name for header in headers for call in header.calls for name in [call.name, *dict(call.declared)]} | {h.page for h in headers}
    made, links = {}, {}
    for header in headers:
        made[header.page] = header_page(header, known, date)
        for call in header.calls:
            made[call.name] = call_page(call, known, date)
            links.update({name: call.name for name, _ in call.declared if name != call.name})
    return made, {link: name for link, name in links.items() if link not in made and link not in TAKEN}


def write_html(out, made, links, headers, version):
    for name, text in made.items():
        done = subprocess.run(["mandoc", "-I", f"os=quiesce {version}", "-T", "html", "-O", "man=%N.html,style=style.css"], input=text, capture_output=True, text=True, check=True)
        (out / f"{name}.html").write_text(done.stdout.replace(
            "</head>", '<meta name="viewport" content="width=device-width"/></head>'), encoding="utf-8")
    for link, name in links.items():
        (out / f"{link}.html").write_text(f'<meta http-equiv="refresh" content="0;url={name}.html">\n', encoding="utf-8")
    rows = "".join(f'<h2><a href="{h.page}.html">{h.path}</a></h2><p>{html.escape(h.summary)}</p><ul>' +
                   "".join(f'<li><a href="{c.name}.html">{c.name}</a> {html.escape(re.sub("@", "", c.summary))}</li>' for c in h.calls) + "</ul>"
                   for h in headers)
    (out / "index.html").write_text(f'<!DOCTYPE html><meta charset="utf-8"><title>quiesce</title><link rel="stylesheet" href="style.css">{rows}\n',
                                    encoding="utf-8")
    (out / "style.css").write_text("body { max-width: 50em; margin: 1em auto; padding: 0 1em; font-family: sans-serif; line-height: 1.4 }\n"
                                   "pre { overflow-x: auto }\nli { margin: .3em 0 }\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", required=True, help="of the pages: Month day, year")
    parser.add_argument("--html", action="store_true")
    parser.add_argument("--depfile", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    if options.html and not shutil.which("mandoc"):
        print("call-manual: there is no mandoc", file=sys.stderr)
        return 77
    top = options.include / "quiesce"
    found = sorted([*top.glob("*.h"), *top.glob("ds/*.h")])
    macros = macros_of("\n".join(path.read_text(encoding="utf-8") for path in sorted(top.rglob("*.h"))))
    headers = [Header(options.include, path, macros) for path in found if path.name != "calls.h"]  # its calls have pages by other names
    wrong = [line for header in headers for line in header.wrong]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    made, links = pages(headers, options.date)
    out = options.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    if options.depfile:
        options.depfile.write_text(f"{out}: " + " ".join(str(path) for path in [top, top / "ds", *(options.include / h.path for h in headers)]) + "\n",
                                   encoding="utf-8")
    if options.html:
        write_html(out, made, links, headers, options.version)
    else:
        for name, text in made.items():
            (out / f"{name}.3").write_text(text, encoding="utf-8")
        for link, name in links.items():
            (out / f"{link}.3").symlink_to(f"{name}.3")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
