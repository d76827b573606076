#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples in README.md and in the headers' opening comments compile without a warning; docs/start.md quotes examples/.

In a header the example is the block of the opening comment that is indented by
a tab; it is put into a block of a function.  Prints TAP.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

from tap import Tap

WARN = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-variable", "-fsyntax-only"]
AROUND = """
struct config {{ int limit; struct rcu_head rcu; HEAD }};
static struct config *config;
static void use(int limit) {{ (void)limit; }}
void example(struct config *p, struct config *old, struct config *fresh);
void example(struct config *p, struct config *old, struct config *fresh)
{{
{{
{}
}}
(void)p; (void)old; (void)fresh; use(0);
}}
"""

# Declarations that examples use without showing them.
PLAIN = {
    "rcu_sync": "static DEFINE_RCU_SYNC(rss); void fast(void); void slow(void);",
    "percpu_rwsem": "struct config; extern struct config *config; void use(struct config *p); void change(struct config *p);",
    "srcu": "extern void *table, *p, *old, *fresh; void read_from_disk(void *p);",
    "percpu_ref": "struct queue { struct percpu_ref users; }; extern struct queue *queue; void work_on(struct queue *queue);\n"
                  "void queue_unused(struct percpu_ref *ref);",
    "slab": "struct route { struct rcu_head rcu; }; extern uint64_t hash, key;\n"
            "struct connection { int users; uint64_t key; }; extern struct connection *c, *table[];\n"
            "bool refcount_inc_not_zero(int *count); void connection_put(struct connection *c);",
    "ds/hashmap": "extern uint64_t address, port;",
    "ds/hashtable": "extern uint64_t id; extern struct flow *flow, *fresh, *old; void use(struct flow *f);",
    "ds/idr": "struct session { struct rcu_head rcu; }; extern struct session *s; void use(struct session *s);\n"
              "void session_free(struct rcu_head *head);",
    "ds/ida": "",
    "ds/xarray": "struct page { struct rcu_head rcu; }; extern struct page *page; extern unsigned long x;\n"
                 "struct area { unsigned long first; }; extern struct area *area; extern struct xarray areas;\n"
                 "void use(struct page *page); void write_back(struct page *page); void page_free(struct rcu_head *head);",
    "ds/lfqueue": "struct job { struct rcu_head rcu; struct lfq_node node; }; extern struct job *j; extern struct lfq_node *node;\n"
                  "void work_on(struct job *j); void job_free(struct rcu_head *head);",
    "ds/wfcqueue": "struct message { struct wfcq_node node; }; extern struct mailbox *box; extern struct message *m; extern struct wfcq_node *node;\n"
                   "void wait_for(sem_t *sem); void use(struct message *m);",
    "ds/value_queue": "struct job;\nvoid work_on(struct job *j);",
    "ds/lfstack": "struct job { struct rcu_head rcu; struct lfs_node node; }; extern struct job *job; void run(struct job *job);",
    "ds/wfstack": "struct buffer { struct wfs_node node; }; extern struct buffer *b; extern int taker; void wake(int who);\n"
                  "void recycle(struct buffer *b);",
    "ds/rculist": "extern struct route *r, *old, *fresh; void use(int to);",
    "ds/rcuhlist": "extern struct user *u, *old, *fresh; extern int id; void use(struct user *u);",
    "ds/rculist_nulls": "extern struct object { struct hlist_nulls_node node; } *o; extern struct hlist_nulls_node *pos;\n"
                        "extern struct hlist_nulls_head chains[]; extern uint64_t key, slot; uint64_t key_of(struct object *o);\n"
                        "bool tryget(struct object *o); void put(struct object *o);",
}
# Declarations for the examples of C++ headers; rcu.hpp is included.
PLAIN_CPP = {
    "rcu": "extern config *fresh; void use(int limit);",
    "hazptr": "extern config *fresh; void use(int limit);",
    "slab": "",
    "ds/hashmap": "void use(double price);",
    "ds/hashtable": "void use(int visits);",
    "ds/idr": "struct session : quiesce::rcu_obj_base<session> {}; extern session *s; void use(session &s);",
    "ds/lfqueue": "extern job *j; void work_on(job &j);",
    "ds/lfstack": "",
    "ds/rculist": "void use(int to);",
    "ds/ida": "void use(int place);",
    "ds/xarray": "struct page : quiesce::rcu_obj_base<page> {}; extern page *fresh; void use(page &p);\n"
                 "void write_back(unsigned long index, page &p);",
    "ds/value_queue": "struct job { explicit job(int number); int number; }; void work_on(job &j);",
    "ds/wfcqueue": "extern message *m; void use(message &m);",
    "ds/wfstack": "extern buffer b; void wake(); void recycle(buffer &b);",
}
OUTSIDE = r"(#include [^\n]*\n|(?:struct \w+[^;]*\{.*?\}|HASHTABLE_TYPE\(.*?\));[^\n]*\n)"  # what does not go into a function


def check(tap, name, include, text):
    run = subprocess.run(["gcc", "-x", "c", "-std=gnu11", "-O2", *WARN, f"-I{include}", "-"], input=text, text=True,
                         capture_output=True)
    tap.result(run.returncode == 0, f"{name}: the example compiles", run.stderr + text)


def check_cpp(tap, name, include, text):
    """Without a C++ compiler the C++ headers are not checked."""
    if not shutil.which("g++"):
        print(f"# {name}: no g++")
        return
    run = subprocess.run(["g++", "-x", "c++", "-std=c++20", "-O2", *WARN, f"-I{include}", "-"], input=text, text=True,
                         capture_output=True)
    tap.result(run.returncode == 0, f"{name}: the example compiles", run.stderr + text)


def check_quotes(tap, root, page):
    """Each block of code is a part of the program that is named above it."""
    text = (root / page).read_text()
    quotes = re.findall(r"^<!-- (examples/\S+) -->\n```c(?:\+\+)?\n(.*?)^```", text, re.S | re.M)
    tap.result(quotes and len(quotes) == len(re.findall(r"^```c(?:\+\+)?$", text, re.M)), f"{page}: all code is quoted", quotes)
    for number, (name, code) in enumerate(quotes, 1):
        tap.result(code in (root / name).read_text(), f"{page}, quotation {number} of {name}", code)


def opening_lines(name, header):
    opening = header[header.index(f"/* quiesce/{name}"):header.index("\n#")]
    return re.findall(r"^ \*\t(.*)$", opening, re.M)


def apart(code):
    """(definitions, the rest)"""
    parts = re.split(OUTSIDE, code + "\n", flags=re.S)
    return "".join(parts[1::2]), "".join(parts[::2])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path, required=True)
    root = args.parse_args().root
    tap = Tap()
    blocks = re.findall(r"^```c\n(.*?)^```", (root / "README.md").read_text(), re.S | re.M)
    tap.result(bool(blocks), "README.md has an example")
    for i, block in enumerate(blocks):
        check(tap, f"README.md, example {i + 1}", root / "include", block)
    for i, block in enumerate(re.findall(r"^```c\+\+\n(.*?)^```", (root / "README.md").read_text(), re.S | re.M)):
        check_cpp(tap, f"README.md, C++ example {i + 1}", root / "include", block)
    check_quotes(tap, root, "docs/start.md")
    for name, head in (("rcu.h", ""), ("shazptr.h", ""), ("hazptr.h", "struct hazptr_head hazptr;")):
        header = (root / "include/quiesce" / name).read_text()
        lines = opening_lines(name, header)
        tap.result(len(lines) > 5, f"{name} has an example")
        check(tap, name, root / "include", f"#include <quiesce/{name}>\n#include <stdlib.h>\n" +
              AROUND.replace("HEAD", head).format("\n".join(lines)))
    for stem, before in PLAIN.items():
        lines = opening_lines(f"{stem}.h", (root / f"include/quiesce/{stem}.h").read_text())
        code = "\n".join("{ }" if line.strip() == "..." else line for line in lines).split("\nstate ")[0]  # a table is no code
        tap.result(len(lines) > 5, f"{stem}.h has an example")
        outside, code = apart(code)
        check(tap, f"{stem}.h", root / "include", f"#include <quiesce/{stem}.h>\n#include <semaphore.h>\n#include <stdlib.h>\n{outside}{before}\n"
              f"void example(void);\nvoid example(void)\n{{\n{code}\n}}\n")
    for stem, before in PLAIN_CPP.items():
        outside, code = apart("\n".join(opening_lines(f"{stem}.hpp", (root / f"include/quiesce/{stem}.hpp").read_text())))
        check_cpp(tap, f"{stem}.hpp", root / "include", f"#include <quiesce/{stem}.hpp>\n#include <quiesce/rcu.hpp>\n"
                  f"#include <atomic>\n#include <cstdint>\n#include <list>\n#include <memory>\n#include <mutex>\n#include <optional>\n#include <semaphore>\n#include <string>\n"
                  f"{outside}{before}\n"
                  f"void example();\nvoid example()\n{{\n{code}\n}}\n")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
