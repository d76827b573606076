#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Teach a Linux tree's lockdep to wait for walkers of its key hash in several ways.

    convert.py TREE KERNEL-DIRECTORY

lockdep_unregister_key() waits until is_dynamic_key() has left the bucket of the key.  Afterwards the wait is chosen at run
time by lockdep.key_wait: 0 none (a planted bug), 1 synchronize_rcu(), 2 synchronize_rcu_expedited(), 3 synchronize_shazptr().
The kernel boots with 1, as 6.12 does; walkers suit all of them, so that the value may change under way.
shazptr is compiled into the kernel as lockdep_shazptr; its symbols are not exported, so that the module can be loaded beside it.
A tree may be converted again.  Exit status 1 if the tree is not as expected.
"""
import os
import re
import sys

INCLUDES = "#include <trace/events/lock.h>\n"

SWITCH = """
/* How lockdep_unregister_key() waits for walkers of the bucket. */
enum key_wait { KEY_WAIT_NONE, KEY_WAIT_RCU, KEY_WAIT_EXPEDITED, KEY_WAIT_SHAZPTR };
static uint key_wait = KEY_WAIT_RCU;
module_param(key_wait, uint, 0644);

static void key_wait_for_walkers(struct hlist_head *bucket)
{
	uint how = READ_ONCE(key_wait);

	/* shazptr has no scan thread before device_initcall. */
	if (how == KEY_WAIT_SHAZPTR && system_state < SYSTEM_RUNNING)
		how = KEY_WAIT_RCU;
	if (how == KEY_WAIT_RCU)
		synchronize_rcu();
	else if (how == KEY_WAIT_EXPEDITED)
		synchronize_rcu_expedited();
	else if (how == KEY_WAIT_SHAZPTR)
		synchronize_shazptr(bucket);
}
"""

MAKE = """
# Hazard pointers for lockdep's key hash.
obj-$(CONFIG_LOCKDEP) += lockdep_shazptr.o
CFLAGS_lockdep_shazptr.o += -I$(src)/quiesce
CFLAGS_lockdep.o += -I$(src)/quiesce
"""


def fail(message):
    sys.exit("convert.py: " + message)


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


def write(name, text):
    """Write changed text only, so that make compiles no more than it has to."""
    if not os.path.exists(name) or read(name) != text:
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)


def unconverted(name):
    """Return the original text of a file of the tree."""
    if not os.path.exists(name + ".unconverted"):
        write(name + ".unconverted", read(name))
    return read(name + ".unconverted")


def change(text, old, new, what):
    if text.count(old) != 1:
        fail(f"{what}: found {text.count(old)} times, not once")
    return text.replace(old, new)


def in_function(text, name, edit):
    """Apply edit to the definition of a function."""
    found = re.search(r"^[^\n;]*\b" + name + r"\([^;{]*\)\n\{\n.*?^\}\n", text, re.M | re.S)
    if not found:
        fail(f"lockdep.c has no function {name}()")
    return text[:found.start()] + edit(found.group()) + text[found.end():]


def convert_reader(body):
    body = change(body, "\trcu_read_lock();\n",
                  "\tpreempt_disable();\n\tguard = shazptr_acquire(hash_head);\n\trcu_read_lock();\n", "the walk's begin")
    body = change(body, "\trcu_read_unlock();\n", "\trcu_read_unlock();\n\tshazptr_clear(guard);\n\tpreempt_enable();\n", "the walk's end")
    return change(body, "\tbool found = false;\n", "\tbool found = false;\n\tstruct shazptr_guard guard;\n", "the walk's variables")


def convert_updater(body):
    body = body.replace("synchronize_rcu_expedited()", "synchronize_rcu()")  # later kernels
    return change(body, "synchronize_rcu();", "key_wait_for_walkers(hash_head);", "the wait")


def convert_lockdep(text):
    text = change(text, INCLUDES, INCLUDES + "#include <linux/shazptr.h>\n", "the place for an include")
    text = in_function(text, "is_dynamic_key", convert_reader)
    text = in_function(text, "lockdep_unregister_key", convert_updater)
    place = re.search(r"^module_param\(prove_locking.*\n", text, re.M)
    if not place:
        fail("lockdep.c has no parameter prove_locking")
    end = text.index("#endif", place.end())
    end = text.index("\n", end) + 1
    return text[:end] + SWITCH + text[end:]


def builtin(text):
    """shazptr.c as a part of the kernel, beside which the module has room."""
    text = re.sub(r"^EXPORT_\w+\(.*\);\n", "", text, flags=re.M)
    return change(text, 'debugfs_create_dir("shazptr"', 'debugfs_create_dir("lockdep_shazptr"', "the name in debugfs")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: convert.py TREE KERNEL-DIRECTORY")
    tree, ours = sys.argv[1:]
    locking = os.path.join(tree, "kernel/locking")
    if not os.path.isfile(os.path.join(locking, "lockdep.c")):
        fail(f"{tree} is no Linux tree")
    lockdep, makefile = os.path.join(locking, "lockdep.c"), os.path.join(locking, "Makefile")
    write(lockdep, convert_lockdep(unconverted(lockdep)))
    write(makefile, unconverted(makefile) + MAKE)
    write(os.path.join(locking, "lockdep_shazptr.c"), builtin(read(os.path.join(ours, "shazptr.c"))))
    write(os.path.join(locking, "shazptr_local.h"), read(os.path.join(ours, "shazptr_local.h")))
    write(os.path.join(locking, "quiesce/linux/shazptr.h"), read(os.path.join(ours, "include/linux/shazptr.h")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
