#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Named modules of C++20 export templates that call the headers' functions, and "import quiesce;" has the names of the C++ faces.

    modules.py --include DIR --static LIBRARY

A template of a module can call functions with external linkage alone, which the headers' inline functions have in C++. So this test also
links files that are compiled with other settings, and a program with functions of the same names: each has its own. Prints TAP.
"""
import argparse
import pathlib
import re
import shutil
import tempfile

from tap import Tap, execute, not_installed

PRIVATE = {"list_member", "list_castable", "list_offset", "counted_base_is_direct", "counted_traits", "counted_convertible", "lfstack_way", "wfstack_way"}
CELL = r"""module;
#include <atomic>
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.hpp>
#include <quiesce/shazptr.hpp>
#include <quiesce/srcu.hpp>
export module cells;

export template<class T> struct cell {
	struct node : quiesce::hazard_pointer_obj_base<node> { T value; };
	std::atomic<node *> current{ nullptr };
	quiesce::srcu_domain domain;

	T get()
	{
		quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
		quiesce::srcu_reader reader(domain);
		quiesce::shazptr guard(current);
		quiesce::rcu_reader section;

		return h.protect(current)->value + guard->value;
	}
	void set(T value)
	{
		node *fresh = new node, *old;

		fresh->value = value;
		old = current.exchange(fresh);
		if (old)
			old->retire();
	}
};
"""
PROGRAM = r"""#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
import cells;
import quiesce;
#include <quiesce/rcu.h>

struct job : quiesce::rcu_obj_base<job> { int number; list_head node; wfs_node pushed; };
struct user : quiesce::rcu_obj_base<user> { explicit user(std::string n) : name(std::move(n)) {} std::string name; };

int main()
{
	cell<int> c;
	quiesce::rcu_hash_map<int, int> map;
	quiesce::rcu_owning_hash_table<user, &user::name> users;
	quiesce::percpu_shared_mutex lock;
	std::scoped_lock holding(lock);
	quiesce::counted_ptr<int> a = quiesce::make_counted<int>(5), b = a;
	quiesce::wfstack<&job::pushed> stack;
	quiesce::idr<job> ids;
	list_head list;
	job j;
	int *published = nullptr, sum = 0;

	c.set(3);
	c.set(4);
	map.insert(1, 2);
	users.insert(std::make_unique<user>("who"));
	INIT_LIST_HEAD(&list);
	j.number = 7;
	list_add_tail_rcu(&j.node, &list);
	stack.push(j);
	(void)ids.alloc(&j);
	rcu_assign_pointer(published, &sum);
	{
		quiesce::rcu_reader section;

		rcu_read_lock();
		for (job &each : quiesce::rcu_list_range<&job::node>(list))
			sum += each.number;
		for (auto [id, each] : ids)
			sum += id + each->number;
		sum += rcu_dereference(published) == &sum;
		rcu_read_unlock();
		sum += users.find("who") && !users.find("else");
	}
	for (job &each : stack.pop_all())
		sum += each.number;
	std::printf("%d %d %d %d\n", c.get(), *map.find(1), sum, a == b && !(a < b));
	return 0;
}
"""
# Two files of one program; each is compiled for two settings, and returns the address of its function.
FORM = """#include <quiesce/rcu.h>
#include <quiesce/ds/rculist.h>
void NAME(void (**ret_lock)(), void (**ret_barrier)(), list_head *list);
void NAME(void (**ret_lock)(), void (**ret_barrier)(), list_head *list)
{
	static list_head one, two;
	*ret_lock = rcu_read_lock;
	*ret_barrier = rcu_barrier;
	list_add(NUMBER == 1 ? &one : &two, list);
	rcu_barrier();
}
"""
FORMS = """#include <quiesce/rcu.h>
#include <quiesce/ds/rculist.h>
void first(void (**)(), void (**)(), list_head *);
void second(void (**)(), void (**)(), list_head *);
int main()
{
	list_head list = LIST_HEAD_INIT(list);
	void (*lock[2])(), (*barrier[2])();
	first(&lock[0], &barrier[0], &list);
	second(&lock[1], &barrier[1], &list);
	return (lock[0] == lock[1]) | (barrier[0] == barrier[1]) << 1 | (list.next == &list || list.next->next->next != &list) << 2;
}
"""
OWN = "void list_add(void *a, void *b);\nvoid rcu_barrier(void);\nvoid list_add(void *a, void *b) { __builtin_trap(); }\nvoid rcu_barrier(void) { __builtin_trap(); }\n"


def names_of(text):
    """Return the names that a face declares in namespace quiesce, outside of namespace detail."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"namespace (?:quiesce::)?detail \{.*?\n\} // namespace (?:quiesce::)?detail", "", text, flags=re.S)
    text = re.sub(r"^#.*|\[\[[^]]*\]\] *", "", text, flags=re.M)
    found = re.findall(r"^(?:template ?<.*> ?)?(?:enum )?(?:class|struct|concept|using) (\w+)(?!\w|::)", text, re.M)
    return set(found + re.findall(r"^(?:inline |template ?<.*> ?)[^(={:]*?(\w+|operator[=<>]+)\(", text, re.M)) - {"decltype"}


def check_names(tap, include):
    declared = set()
    for face in [*(include / "quiesce").glob("*.hpp"), *(include / "quiesce/ds").glob("*.hpp"), include / "quiesce/detail/popped.hpp"]:
        declared |= names_of(face.read_text())
    module = (include / "quiesce/quiesce.cppm").read_text()
    exported = set(re.findall(r"using quiesce::([^;]+);", module))
    older = {"operator!=", "operator<", "operator>", "operator<=", "operator>="}
    missing = sorted(declared - exported - PRIVATE - older)
    tap.result(len(declared) > 40 and not missing, "the module exports every public name of namespace quiesce", missing)
    faces = {str(f.relative_to(include)) for f in (include / "quiesce").rglob("*.hpp") if "detail" not in f.parts}
    tap.result(faces == set(re.findall(r"#include <(.*)>", module)), "the module has every face", faces)


def check_modules(tap, opt, tmp):
    title = "a module's templates, and import quiesce"
    if not shutil.which("clang++-19"):
        tap.skip(title, not_installed("clang++-19"))
        return
    (tmp / "cells.cppm").write_text(CELL)
    (tmp / "main.cpp").write_text(PROGRAM)
    for flags in (["-O0"], ["-O2"], ["-O1", "-DQUIESCE_DEBUG"]):
        clang, where = ["clang++-19", "-std=c++20", "-pthread", *flags], [f"-I{opt.include}"]
        steps = [clang + where + ["--precompile", opt.include / "quiesce/quiesce.cppm", "-o", "quiesce.pcm"],
                 clang + where + ["--precompile", "cells.cppm", "-o", "cells.pcm"],
                 clang + ["-c", "quiesce.pcm", "-o", "quiesce.o"],
                 clang + ["-c", "cells.pcm", "-o", "cells.o"],
                 clang + where + ["-fprebuilt-module-path=.", "main.cpp", "quiesce.o", "cells.o", "-o", "main", opt.static]]
        failed = next((run for run in (execute(step, cwd=tmp) for step in steps) if run.returncode), None)
        if failed:
            tap.result(False, " ".join([title, *flags]), failed.stderr)
        else:
            tap.run(" ".join([title, *flags]), [tmp / "main"], text="8 2 23 1")


def check_forms(tap, opt, tmp):
    """Without optimisation, where inline functions are functions."""
    (tmp / "own.c").write_text(OWN)
    execute(["cc", "-c", tmp / "own.c", "-o", tmp / "own.o"])
    (tmp / "forms.cpp").write_text(FORMS)
    for cxx in ("g++", "clang++-19"):
        for setting in ("-DQUIESCE_DEBUG", "-DQUIESCE_FIBERS"):
            title = f"files with and without {setting}, and functions of the program's with the same names: {cxx}"
            if not shutil.which(cxx):
                tap.skip(title, not_installed(cxx))
                continue
            objects = []
            for i, (name, flags) in enumerate((("first", []), ("second", [setting]))):
                (tmp / f"{name}.cpp").write_text(FORM.replace("NAME", name).replace("NUMBER", str(i)))
                objects.append(tmp / f"{name}.o")
                built = execute([cxx, "-std=c++11", "-O0", *flags, f"-I{opt.include}", "-c", tmp / f"{name}.cpp", "-o", objects[-1]])
                if built.returncode:
                    tap.result(False, title, built.stderr)
            program = tmp / "forms"
            built = execute([cxx, "-std=c++11", "-O0", f"-I{opt.include}", tmp / "forms.cpp", *objects, tmp / "own.o", "-o", program, opt.static, "-lpthread"])
            if built.returncode:
                tap.result(False, title, built.stderr)
            else:
                tap.run(title, [program])


def shared_functions(cxx, flags, include, tmp):
    """The names of functions of the headers that the linker merges with those of other files."""
    (tmp / "tag.cpp").write_text(FORM.replace("NAME", "tag").replace("NUMBER", "0"))
    execute([cxx, "-std=c++11", "-O0", *flags, f"-I{include}", "-c", tmp / "tag.cpp", "-o", tmp / "tag.o"])
    return {line.split()[-1] for line in execute(["nm", tmp / "tag.o"]).stdout.splitlines() if " W " in line and "quiesce_" in line}


def check_tags(tap, opt, tmp):
    """A file for newer CPUs, or for a sanitizer, shares no function with others: the linker would take either for both."""
    for cxx in filter(shutil.which, ("g++", "clang++-19")):
        plain = shared_functions(cxx, [], opt.include, tmp)
        for setting in ("-mavx2", "-fsanitize=thread"):
            other = shared_functions(cxx, [setting], opt.include, tmp)
            tap.result(plain and other and not plain & other, f"{cxx} {setting}: functions of its own", f"{sorted(plain & other)}\n{sorted(other)}")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("--static", type=pathlib.Path, required=True)
    opt = args.parse_args()
    tap = Tap()
    check_names(tap, opt.include)
    with tempfile.TemporaryDirectory() as name:
        check_modules(tap, opt, pathlib.Path(name))
        check_forms(tap, opt, pathlib.Path(name))
        check_tags(tap, opt, pathlib.Path(name))
    return tap.finish()


if __name__ == "__main__":
    raise SystemExit(main())
