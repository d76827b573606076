# SPDX-License-Identifier: MIT
"""Pointers that a program gives to macros are converted as an assignment or a call would convert them, or are refused.

The compiler's atomic builtins do not convert: g++ stores the address of an object where that of its base belongs, and gcc takes any
pointer for any other.  So every public macro is in a table, or among the others with the reason.  From the tables a program is made for
C and for C++, which compiles with the warnings that users choose, and runs; and statements, each of which is refused.  The tables are in
pointer_macros.py: here for quiesce's headers, in tests/liburcu for the face.
"""
import concurrent.futures
import dataclasses
import pathlib
import re
import shutil
import tempfile

from tap import Tap, execute

WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-qual", "-Werror", "-Wno-unused"]
CXX_WARN = ["-Wold-style-cast", "-Wno-invalid-offsetof"]
COMPILERS = [
    ("gcc", "c", ["gnu11", "gnu17", "gnu2x"]), ("clang-19", "c", ["gnu11", "gnu17", "gnu23"]),
    ("g++", "c++", ["c++11", "c++17", "c++20", "c++23"]), ("clang++-19", "c++", ["c++11", "c++17", "c++20", "c++26"])]
C, CXX, BOTH = ("c",), ("c++",), ("c", "c++")

TOP = """
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct opaque;
struct stranger { long n; };
struct thing { long n; MEMBERS };
#ifdef __cplusplus
struct pad { long z; };
struct first { long a = 1; virtual ~first() {} };
struct second { long b = 2; MEMBERS virtual ~second() {} };
struct whole : first, second { long c = 3; };
struct holder { second *at; operator second *() const { return at; } };
static whole all;
static second *const part = &all; /* at another address */
static void over(int) {}
static void over(char) {}
#endif
static struct thing one, two, three, four;
static const struct thing *const fixed = &three;
static volatile struct thing *const moving = &four;
static struct stranger other;
static struct opaque *hidden;
static int numbers[4];
static void *any = &one;
static int nr_wrong, nr_places, nr_values;
static void called(void) {}
static struct thing **place(struct thing **p) { return nr_places++, p; }
static struct thing *value(struct thing *p) { return nr_values++, p; }
static struct thing *made(void) { return QUIESCE_CAST(struct thing *, calloc(1, sizeof(struct thing))); }
static void expect(bool ok, const char *what)
{
	if (!ok)
		printf("wrong: %s\\n", what);
	nr_wrong += !ok;
}
"""

# Each row has the arguments of a macro that stores: title, languages, variable, value, and the condition that holds afterwards.
VALUES = [
    ("an object", BOTH, "struct thing *p", "&one", "p == &one"),
    ("a null pointer", BOTH, "struct thing *p", "NULL", "p == NULL"),
    ("0", BOTH, "struct thing *p", "0", "p == NULL"),
    ("an object, to one of constants", BOTH, "const struct thing *p", "&one", "p == &one"),
    ("a constant", BOTH, "const struct thing *p", "fixed", "p == fixed"),
    ("what is volatile", BOTH, "volatile struct thing *p", "moving", "p == moving"),
    ("an object, to a volatile variable", BOTH, "struct thing *volatile p", "&one", "p == &one"),
    ("what a macro returns", BOTH, "struct thing *q = &one, *p", "rcu_xchg_pointer(&q, &two)", "p == &one && q == &two"),
    ("nullptr", CXX, "second *p", "nullptr", "p == nullptr"),
    ("an object, to one of its base", CXX, "second *p", "&all", "p == part"),
    ("the same of constants", CXX, "const second *p", "&all", "p == part"),
    ("the same, volatile", CXX, "second *volatile p", "&all", "p == part"),
    ("what converts to a pointer", CXX, "second *p", "holder{ part }", "p == part"),
    ("an object, to a reference", CXX, "second *q, *&p = q", "&all", "q == part"),
]
# Each row has the arguments of a macro that stores to pointers to any type.
ANY_VALUES = [
    ("an array", BOTH, "int *p", "numbers", "p == numbers"),
    ("a literal", BOTH, "const char *p", '"none"', '!strcmp(p, "none")'),
    ("a function", BOTH, "void (*p)(void)", "called", "p == called"),
    ("an object, to one of void", BOTH, "void *p", "&one", "p == &one"),
    ("of an incomplete type", BOTH, "struct opaque *p", "hidden", "p == hidden"),
    ("of void, to one of objects", C, "struct thing *p", "any", "p == &one"),
    ("one of two functions", CXX, "void (*p)(char)", "over", "p != nullptr"),
    ("an object with bases, to one of void", CXX, "void *p", "&all", "p == &all"),
]
WRONG_VALUES = [
    ("of another type", BOTH, "struct thing *p", "&other"),
    ("a constant", BOTH, "struct thing *p", "fixed"),
    ("what is volatile", BOTH, "struct thing *p", "moving"),
    ("a number", BOTH, "struct thing *p", "5"),
    ("an object, not its address", BOTH, "struct thing *p", "one"),
    ("of void", CXX, "struct thing *p", "any"),
    ("of a base", CXX, "whole *p", "part"),
]
# Variables that are loaded, and what they hold; what is not the address of one.
PLACES = [
    ("a variable", BOTH, "struct thing *p", "&one"),
    ("of constants", BOTH, "const struct thing *p", "fixed"),
    ("of what is volatile", BOTH, "volatile struct thing *p", "moving"),
    ("volatile itself", BOTH, "struct thing *volatile p", "&one"),
    ("constant itself", BOTH, "struct thing *const p", "&one"),
    ("of a base", CXX, "second *p", "&all"),
]
NO_PLACES = [("the address of an object", "&one"), ("the address of a number", "&other.n"), ("an array", "numbers")]


@dataclasses.dataclass
class Tables:
    """{macro: its use}.  {p}: a variable; {w}: its address; {v}: a value; {h}: the address of a list's head."""
    includes: str
    members: str                                 # members of every object
    more: str = ""                               # declarations, and void setup(void)
    stores: dict = dataclasses.field(default_factory=dict)
    field_stores: dict = dataclasses.field(default_factory=dict)  # macros for pointers to objects only
    olds: dict = dataclasses.field(default_factory=dict)     # macros that store NULL in place of {v}
    loose: tuple = ()                            # stores that take numbers, and in C anything
    loads: dict = dataclasses.field(default_factory=dict)    # macros that load by address
    guards: dict = dataclasses.field(default_factory=dict)   # guards of a void *
    lvalues: dict = dataclasses.field(default_factory=dict)
    walks: dict = dataclasses.field(default_factory=dict)    # nr_values++ for each of three
    nodes: dict = dataclasses.field(default_factory=dict)    # {macro: (a field of every object, its type)}
    good: list = dataclasses.field(default_factory=list)     # (title, languages, text)
    bad: list = dataclasses.field(default_factory=list)
    others: dict = dataclasses.field(default_factory=dict)   # {reason: macros, or patterns of their names}
    void_nodes: tuple = BOTH                     # languages in which a node may come as void *
    flags: tuple = ("-Wshadow",)

    def covered(self, name):
        uses = [*self.stores.values(), *self.field_stores.values(), *self.olds.values(), *self.loads.values(), *self.guards.values(),
                *self.lvalues.values(), *self.walks.values(), *(text for _, _, text in self.good)]
        return name in self.nodes or any(re.search(rf"\b{name}\(", use) for use in uses) or \
            any(re.fullmatch(pattern, name) for names in self.others.values() for pattern in names.split())


def filled(use, **what):
    for name, text in what.items():
        use = use.replace(f"{{{name}}}", text)
    return use


def good_stores(t):
    for name, use in {**t.stores, **t.field_stores}.items():
        for title, languages, variable, given, then in VALUES + (ANY_VALUES if name in t.stores else []):
            if given == "over" and name in t.loose:
                continue # such macros do not check the variable
            yield f"{name}: {title}", languages, f"{variable}; p = NULL; {filled(use, p='p', v=given)}; expect({then}, WHAT);"
        once = filled(use, p="*place(&p)", v="value(&one)")
        yield f"{name}: once", BOTH, \
            f"struct thing *p = NULL; nr_places = nr_values = 0; {once}; expect(p == &one && nr_places == 1 && nr_values == 1, WHAT);"
    for name, use in t.olds.items():
        for title, languages, variable, given, _ in VALUES:
            if "(" not in given:
                yield f"{name}: old, {title}", languages, f"{variable}; p = {given}; {filled(use, p='p', v=given)}; expect(p == NULL, WHAT);"


def good_loads(t):
    uses = [(name, use.replace("{w}", "{p}"), prefix) for table, prefix in ((t.loads, "&"), (t.guards, "&"), (t.lvalues, ""))
            for name, use in table.items()]
    for name, use, prefix in uses:
        got = "const volatile void *got" if name in t.guards else "__typeof__(1 ? p : NULL) got"
        for title, languages, variable, held in PLACES:
            yield f"{name}: {title}", languages, f"{variable} = {held}; {got} = {filled(use, p=prefix + 'p')}; expect(got == p, WHAT);"
        once = filled(use, p="place(&p)" if prefix else "*place(&p)")
        yield f"{name}: once", BOTH, f"struct thing *p = &one; nr_places = 0; {got} = {once}; expect(got == p && nr_places == 1, WHAT);"


def good(t):
    """Yield (title, languages, text) of statements that compile and hold."""
    yield from good_stores(t)
    yield from good_loads(t)
    for name, use in t.walks.items():
        yield f"{name}: a head", BOTH, f"fill(&list); nr_values = 0; {filled(use, h='&list')}; expect(nr_values == 3, WHAT);"
        yield f"{name}: a head that is a base", CXX, f"fill(&derived); nr_values = 0; {filled(use, h='&derived')}; expect(nr_values == 3, WHAT);"
    for name, (field, kind) in t.nodes.items():
        for title, languages, declared in (("a node", BOTH, f"struct {kind} *n"), ("a constant one", BOTH, f"const struct {kind} *n"),
                                           ("from void", t.void_nodes, "void *n")):
            yield f"{name}: {title}", languages, f"{declared} = &one.{field}; expect({name}(n, struct thing, {field}) == &one, WHAT);"
    yield from t.good


def bad(t):
    """Yield (title, languages, text) of statements that are refused."""
    for name, use in {**t.stores, **t.field_stores}.items():
        for title, languages, variable, given in WRONG_VALUES if name not in t.loose else ():
            yield f"{name}: {title}", languages, f"{variable} = NULL; {filled(use, p='p', v=given)};"
    for name, use in {**t.loads, **t.guards}.items():
        for title, address in NO_PLACES:
            yield f"{name}: {title}", BOTH, f"(void){filled(use, w=address)};"
    for name, use in t.walks.items():
        yield f"{name}: the head of something else", BOTH, \
            f"struct none {{ struct stranger *next, *prev; }} none = {{ NULL, NULL }}; {filled(use, h='(&none)')};"
    for name, (field, kind) in t.nodes.items():
        yield f"{name}: no node", BOTH, f"(void){name}(&other, struct thing, {field});"
        yield f"{name}: no such member", BOTH, f"(void){name}(&one.{field}, struct thing, n);"
        yield f"{name}: a member of a derived class", CXX, \
            f"struct odd : pad, {kind} {{}}; struct has {{ odd f; }}; {kind} *n = nullptr; (void){name}(n, has, f);"
    yield from t.bad


def top(t):
    return t.includes + TOP.replace("MEMBERS", t.members) + t.more


def program(t, language):
    parts, calls = [top(t)], []
    for number, (title, languages, text) in enumerate(good(t)):
        if language in languages:
            parts.append(f"#undef WHAT\n#define WHAT {title!r}\n".replace("'", '"') + f"static void test_{number}(void) {{ {text} }}\n")
            calls.append(f"\ttest_{number}();\n")
    ends = f'\tprintf("{len(calls)} statements, %d wrong\\n", nr_wrong);\n\treturn nr_wrong != 0;\n'
    return "".join(parts) + f"int main(void)\n{{\n\tsetup();\n{''.join(calls)}{ends}}}\n", len(calls)


def refused(t, command, language):
    """Yield (title, refused, messages): the compiler must report a line in each statement."""
    wanted = [(number, title, text) for number, (title, languages, text) in enumerate(bad(t)) if language in languages]
    source = top(t) + "".join(f'#line 1 "bad{number}"\nstatic void bad_{number}(void) {{ {text} }}\n' for number, _, text in wanted)
    run = execute([*command, "-fsyntax-only", "-"], input=source)
    said = set(re.findall(r"^bad(\d+):\d+:", run.stderr, re.M))
    return [(title, str(number) in said) for number, title, _ in wanted], run.stderr


class Runner:
    def __init__(self, tables, includes, library):
        self.tables, self.library = tables, library
        self.includes = [f"-I{i}" for i in includes]

    def command(self, compiler, language, standard):
        clang = ["-ferror-limit=0"] if "clang" in compiler else ["-fmax-errors=0"]
        return [compiler, "-x", language, f"-std={standard}", *WARN, *self.tables.flags, *(CXX_WARN if language == "c++" else []), *clang,
                *self.includes]

    def built_and_run(self, job):
        (compiler, language, standard, *flags), tmp = job
        text, number = program(self.tables, language)
        name = "-".join([compiler, standard, *flags])
        made = execute([*self.command(compiler, language, standard), *flags, "-o", tmp / name, "-", "-x", "none", self.library, "-lpthread"],
                       input=text)
        run = execute([tmp / name]) if not made.returncode else made
        return f"{name}: {number} statements compile and are right", not run.returncode and f"{number} statements, 0" in run.stdout, \
            made.stderr + run.stdout

    def only_compiled(self, job):
        compiler, language, standard, *flags = job
        text, number = program(self.tables, language)
        made = execute([*self.command(compiler, language, standard), *flags, "-fsyntax-only", "-"], input=text)
        return f"{' '.join(job)}: {number} statements compile", not made.returncode, made.stderr


def missing(tables, headers):
    names = {name for h in headers for name in re.findall(r"^#\s*define (\w+)\(", h.read_text(), re.M)}
    return sorted(n for n in names if not re.match("_*quiesce", n, re.I) and not tables.covered(n))


def check(tables, includes, library):
    """All of it; the headers in question are those of the first of @includes."""
    tap, runner = Tap(), Runner(tables, includes, library)
    left = missing(tables, sorted(includes[0].rglob("*.h")))
    tap.result(not left, "every macro is in a table", left)
    found = [entry for entry in COMPILERS if shutil.which(entry[0])]
    for compiler, *_ in COMPILERS:
        if not shutil.which(compiler):
            tap.skip(compiler, "not installed here")
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(2) as pool:
        # An optimiser does not depend on the year.
        jobs = [((c, lang, std, level), pathlib.Path(tmp)) for c, lang, stds in found for std in stds
                for level in ("-O0", "-O2") if level == "-O0" or std == stds[0]]
        for title, ok, said in pool.map(runner.built_and_run, jobs):
            tap.result(ok, title, said[:3000])
        for title, ok, said in pool.map(runner.only_compiled, [(c, lang, stds[-1], "-DQUIESCE_DEBUG") for c, lang, stds in found]):
            tap.result(ok, title, said[:3000])
    for compiler, language, standards in found:
        command = runner.command(compiler, language, standards[0])
        results, said = refused(tables, command, language)
        through = [title for title, ok in results if not ok]
        tap.result(not through, f"{compiler}: {len(results)} statements are refused", "\n".join(map(str, through)))
        # The test itself can fail: without the conversion.
        planted = dataclasses.replace(tables, includes=tables.includes + "#undef QUIESCE_CONVERT\n#define QUIESCE_CONVERT(type, value) (value)\n")
        if tables.stores.keys() - set(tables.loose) and "clang" not in compiler:
            results, _ = refused(planted, command, language)
            tap.result(not all(ok for _, ok in results), f"{compiler}: a planted fault lets something through")
    return tap.finish()
