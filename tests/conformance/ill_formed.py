#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that the draft forbids do not compile; beside each is one that differs in the forbidden statement only, and compiles.

Each case has a title, the text in front of both, the statement that is allowed, the one that is not, and the message of our own
headers ("" where it is the compiler's own).  Prints TAP.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "build"))
from tap import Tap, execute, not_installed  # noqa: E402

HP, RCU, TABLE = "T must be hazard-protectable", "T must be rcu-protectable", "a table that retires needs a T"
NODE = "struct good : impl::{0}_obj_base<good> {{}};"
PRIVATE = "template<class X> class bad : impl::{0}_obj_base<bad<X>> {{ public: void go() {{ this->retire(); }} }};" \
          "template<class X> struct good : impl::{0}_obj_base<good<X>> {{ void go() {{ this->retire(); }} }};"
HNODE, RNODE = NODE.format("hazard_pointer"), NODE.format("rcu")
BASES = [  # title, a class that is not protectable for a reason; B: the template of the base
    ("of no base", "struct bad {};"),
    ("with the base of another class", "struct bad : B<good> {};"),
    ("with a private base", "class bad : B<bad> {};"),
    ("with a protected base", "struct bad : protected B<bad> {};"),
    ("with a virtual base", "struct bad : virtual B<bad> {};"),
    ("with two bases", "struct none { void operator()(void *) const {} }; struct bad : B<bad>, B<bad, none> {};"),
    ("with a base of its own and that of another", "struct bad : B<bad>, B<good> {};"),
    ("with a base twice", "struct one : B<struct bad> {}; struct two : B<struct bad> {}; struct bad : one, two {};"),
    ("derived from a protectable one", "struct bad : good {};"),
]
CASES = [
    (f"protect() of a class {title}", HNODE + text.replace("B<", "impl::hazard_pointer_obj_base<"),
     "std::atomic<good *> a; (void)h.protect(a);", "std::atomic<bad *> a; (void)h.protect(a);", HP)
    for title, text in BASES
] + [
    (f"reset_protection() with a class {title}", HNODE + text.replace("B<", "impl::hazard_pointer_obj_base<"),
     "h.reset_protection(static_cast<const good *>(nullptr));", "h.reset_protection(static_cast<const bad *>(nullptr));", HP)
    for title, text in BASES[1:8:3]
] + [
    ("protect() of no class", HNODE, "std::atomic<good *> a; (void)h.protect(a);", "std::atomic<int *> a; (void)h.protect(a);", HP),
    ("protect() of an incomplete class", "struct later; struct complete : impl::hazard_pointer_obj_base<complete> {};",
     "std::atomic<complete *> a; (void)h.protect(a);", "std::atomic<later *> a; (void)h.protect(a);", "incomplete"),
    ("try_protect() with a pointer of another type", HNODE, "std::atomic<good *> a; good *p = nullptr; (void)h.try_protect(p, a);",
     "std::atomic<good *> a; void *p = nullptr; (void)h.try_protect(p, a);", ""),
    ("protect() by a constant hazard_pointer", HNODE, "std::atomic<good *> a; (void)h.protect(a);",
     "std::atomic<good *> a; (void)std::as_const(h).protect(a);", ""),
    ("a copy of a hazard_pointer", "", "impl::hazard_pointer k(std::move(h));", "impl::hazard_pointer k(h);", ""),
    ("a copying assignment of a hazard_pointer", "", "impl::hazard_pointer k; k = std::move(h);",
     "impl::hazard_pointer k; k = h;", ""),
    ("a batch of constants", "", "impl::make_hazard_pointer_batch(std::span(&h, 1));",
     "impl::make_hazard_pointer_batch(std::span(&std::as_const(h), 1));", ""),
    ("retire() of a class that has the base of another", HNODE + "struct bad : impl::hazard_pointer_obj_base<int> {};",
     "(new good)->retire();", "(new bad)->retire();", HP),
    ("retire() of a class with a virtual base", HNODE + "struct bad : virtual impl::hazard_pointer_obj_base<bad> {};",
     "(new good)->retire();", "(new bad)->retire();", HP),
    ("retire() through a private base", PRIVATE.format("hazard_pointer"), "(new good<int>)->go();", "(new bad<int>)->go();", HP),
    ("a deleter that cannot be called", "struct d { void operator()(void *) const {} }; struct e {};"
     "template<class D> struct n : impl::hazard_pointer_obj_base<n<D>, D> {};",
     "(new n<d>)->retire();", "(new n<e>)->retire();", ""),
    ("a deleter that cannot be made by default", "struct d { void operator()(void *) const {} }; struct e : d { e(int) {} };"
     "template<class D> struct n : impl::hazard_pointer_obj_base<n<D>, D> {};", "n<d> x; (void)x;", "n<e> x; (void)x;", ""),
    ("an end of a base by others", HNODE, "delete new good;", "delete static_cast<impl::hazard_pointer_obj_base<good> *>(new good);", ""),
    ("a base without a derived class", HNODE, "good x; (void)x;", "impl::hazard_pointer_obj_base<good> x; (void)x;", ""),
] + [
    (f"rcu: retire() of a class {title}", RNODE + text.replace("B<", "impl::rcu_obj_base<"),
     "(new good)->retire();", "(new bad)->retire();", said)
    for (title, text), said in zip(BASES[2:5], ("", "", RCU))
] + [
    ("rcu: retire() through a private base", PRIVATE.format("rcu"), "(new good<int>)->go();", "(new bad<int>)->go();", RCU),
    ("rcu: retire() of a class that has the base of another", RNODE + "struct bad : impl::rcu_obj_base<int> {};",
     "(new good)->retire();", "(new bad)->retire();", RCU),
    ("rcu_retire() with a deleter that cannot be called", "struct d { void operator()(int *) const {} };",
     "impl::rcu_retire(new int, d());", "impl::rcu_retire(new long, d());", "d(p) must be well-formed"),
    ("rcu_retire() with a deleter that cannot be moved", "struct d { d() = default; d(const d &) = default; void operator()(int *) const {} };"
     "struct e : d { e() = default; e(const e &) = delete; };",
     "impl::rcu_retire<int, d>(new int);", "impl::rcu_retire<int, e>(new int);", ""),
    ("rcu_retire() of what is no pointer", "", "impl::rcu_retire(new int(1));", "impl::rcu_retire(1);", ""),
    ("a domain of one's own", "", "impl::rcu_domain &d = impl::rcu_default_domain(); (void)d;", "impl::rcu_domain d; (void)d;", ""),
    ("a copy of the domain", "", "auto &d = impl::rcu_default_domain(); (void)d;", "auto d = impl::rcu_default_domain(); (void)d;", ""),
    ("rcu: a base without a derived class", RNODE, "good x; (void)x;", "impl::rcu_obj_base<good> x; (void)x;", ""),
]
OWNED = "quiesce::rcu_owning_hash_table<{0}, &{0}::id> t; (void)t;"
OBJECT = "struct good : quiesce::rcu_obj_base<good> { long id; };"
CASES += [  # ours, not the draft's
    (f"an owning table of a class {title}", OBJECT + text, OWNED.format("good"), OWNED.format("bad"), TABLE)
    for title, text in (
        ("of hazard pointers", "struct bad : quiesce::hazard_pointer_obj_base<bad> { long id; };"),
        ("of both", "struct bad : quiesce::hazard_pointer_obj_base<bad>, quiesce::rcu_obj_base<bad> { long id; };"),
        ("of neither, with a retire() of its own", "struct bad { long id; void retire() {} };"),
        ("with a private base", "class bad : quiesce::rcu_obj_base<bad> { public: long id; };"),
        ("with two bases", "struct none { void operator()(void *) const {} };"
         "struct bad : quiesce::rcu_obj_base<bad>, quiesce::rcu_obj_base<bad, none> { long id; };"),
        ("derived from a retirable one without a virtual destructor", "struct bad : good {};"))
] + [
    ("an owning table of a class derived from one of hazard pointers",
     "struct base : quiesce::rcu_obj_base<base> { long id; virtual ~base() = default; }; struct good : base {};"
     "struct wrong : quiesce::hazard_pointer_obj_base<wrong> { long id; virtual ~wrong() = default; }; struct bad : wrong {};",
     OWNED.format("good"), OWNED.format("bad"), TABLE),
    ("an owning table of hazard pointers, that drops its objects in an unknown way", "struct part : quiesce::hazard_pointer_obj_base<part> { long id; };"
     "struct waits { void operator()(part *gone) const noexcept { synchronize_rcu(); gone->retire(); } };",
     "quiesce::rcu_hash_table<part, &part::id, quiesce::rcu_hash, quiesce::rcu_hash_equal, waits> t; (void)t;",
     "quiesce::rcu_hash_table<part, &part::id, quiesce::rcu_hash, quiesce::rcu_hash_equal, quiesce::rcu_hash_retire> t; (void)t;", TABLE),
]
SHIELDED = "struct part : quiesce::hazard_pointer_obj_base<part> { long id; }; using shielded = quiesce::hazard_hash_table<part, &part::id>;"
CASES += [
    ("a table of hazard pointers of a class of RCU", SHIELDED + OBJECT, "shielded t; (void)t;",
     "quiesce::hazard_hash_table<good, &good::id> t; (void)t;", TABLE),
    ("find() without a hazard pointer in a table of them", SHIELDED, "shielded t; (void)t.find(1, quiesce::make_hazard_pointer());",
     "shielded t; (void)t.find(1);", ""),
    ("a loop over a table of hazard pointers", SHIELDED, "shielded t; (void)t.size();", "shielded t; (void)t.begin();", ""),
    ("contains() in a table of hazard pointers", SHIELDED, "shielded t; (void)t.empty();", "shielded t; (void)t.contains(1);", ""),
]
COMPILERS = {"quick": [["g++", "-std=c++20"]],
             "full": [["g++", "-std=c++20"], ["g++", "-std=c++23"], ["clang++-19", "-std=c++20"], ["clang++-19", "-std=c++26", "-stdlib=libc++"]]}


class Compiler:
    """config.hpp is compiled once, and each case on top of it."""

    def __init__(self, command, flags, tmp):
        self.command, self.tmp = [*command, "-Wall", "-Wextra", "-Werror", *flags], tmp
        (tmp / "top.hpp").write_text(f'#include "{HERE}/config.hpp"\n#include <atomic>\n#include <utility>\n#include <span>\n'
                                   "#include <quiesce/ds/hashtable_hazptr.hpp>\n")
        clang = command[0].startswith("clang")
        made = execute([*self.command, "-x", "c++-header", tmp / "top.hpp", "-o", tmp / ("top.pch" if clang else "top.hpp.gch")])
        self.said = made.stderr if made.returncode else ""
        self.no_limit = ["-ferror-limit=0"] if clang else []
        self.include = ["-include-pch", tmp / "top.pch"] if clang else ["-include", tmp / "top.hpp"]

    def compiles(self, name, text):
        source = self.tmp / f"{name}.cpp"
        source.write_text(text)
        run = execute([*self.command, *self.include, "-fsyntax-only", *self.no_limit, source])
        return run.returncode == 0, run.stderr


def program(number, common, statement):
    return f'#line 1 "case{number}"\nnamespace case{number} {{\n{common}\nvoid use(impl::hazard_pointer &h);\n' \
           f"void use([[maybe_unused]] impl::hazard_pointer &h) {{ {statement} }}\n}}\n"


def one_by_one(compiler, pool):
    """Compile each case as a program of its own."""
    def refused(job):
        number, (_, common, _, bad, said) = job
        ok, text = compiler.compiles(f"bad{number}", program(number, common, bad))
        return not ok and "error" in text and said in text, f"want an error with '{said}'; the compiler says:\n{text[:3000]}"

    return pool.map(refused, enumerate(CASES))


def all_together(compiler):
    """Compile all cases as one program, which is faster: the compiler reports a line in each."""
    ok, text = compiler.compiles("bad", "".join(program(i, case[1], case[3]) for i, case in enumerate(CASES)))
    for number, case in enumerate(CASES):
        found = re.search(f"^case{number}:\\d+:", text, re.M)
        yield not ok and "error" in text and found and case[4] in text, f"no complaint about it in:\n{text[:3000]}"


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, default=HERE.parents[1] / "include")
    args.add_argument("--set", choices=COMPILERS, default="quick")
    opt, tap = args.parse_args(), Tap()
    for command in COMPILERS[opt.set]:
        name = " ".join(command)
        if not shutil.which(command[0]):
            tap.skip(name, not_installed(command[0]))
            continue
        with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(2) as pool:
            compiler = Compiler(command, [f"-I{opt.include}"], pathlib.Path(tmp))
            if not tap.result(not compiler.said, f"{name}: the headers compile", compiler.said):
                continue
            good = "".join(program(i, case[1], case[2]) for i, case in enumerate(CASES))
            ok, text = compiler.compiles("good", good)
            tap.result(ok, f"{name}: {len(CASES)} programs that are allowed compile", text)
            tried = one_by_one(compiler, pool) if opt.set == "full" else all_together(compiler)
            for case, (ok, text) in zip(CASES, tried):
                tap.result(ok, f"{name}: refused: {case[0]}", text)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
