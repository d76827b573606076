#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program must not run with another library's headers, nor with two copies of the library.

Either would make readers and updaters access different memory: objects would be freed
under readers, without a crash.  So both must end in one clear line and an abort.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile

from tap import Tap, execute

READER = """
#include <quiesce/rcu.h>
#include <stdio.h>
int main(void)
{
	rcu_read_lock();
	rcu_read_unlock();
	synchronize_rcu();
	puts("went on");
	return 0;
}
"""
# The program contains the static library; the plug-in loads the shared one.
LOADER = """
#include <quiesce/rcu.h>
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	void (*use)(void) = plugin ? (void (*)(void))dlsym(plugin, "plugin_use") : NULL;

	if (argc != 2 || !use) {
		puts(dlerror());
		return 3;
	}
	rcu_read_lock();
	rcu_read_unlock();
	use();
	synchronize_rcu();
	puts("went on");
	return 0;
}
"""
PLUGIN = """
#include <quiesce/rcu.h>
void plugin_use(void);
void plugin_use(void)
{
	rcu_read_lock();
	rcu_read_unlock();
	synchronize_rcu();
}
"""


def build(tmp, name, text, flags):
    source = tmp / (name + ".c")
    source.write_text(text)
    return execute(["gcc", "-O2", "-std=gnu11", "-o", tmp / name, source, *flags])


def expect_abort(tap, name, command, pattern, env):
    run = execute(command, env)
    ok = run.returncode == -signal.SIGABRT and re.search(pattern, run.stderr) and run.stderr.count("\n") <= 2
    tap.result(ok and "went on" not in run.stdout, name, f"status {run.returncode}\n{run.stdout}{run.stderr}")


def check_layout(tap, opt, tmp, env):
    tampered = tmp / "include"
    shutil.copytree(opt.include, tampered)
    base = tampered / "quiesce/base.h"
    text, n = re.subn(r"(#define QUIESCE_LAYOUT 0x)\w+", r"\g<1>51ffffffu", base.read_text())
    base.write_text(text)
    tap.result(n == 1, "the headers carry a layout stamp")
    for title, link in (("shared", [opt.shared]), ("static", [opt.static, "-pthread"])):
        good = build(tmp, "good", READER, [f"-I{opt.include}", *link])
        tap.result(good.returncode == 0, f"{title}: program builds", good.stderr)
        tap.run(f"{title}: the library's own headers are accepted", [tmp / "good"], text="went on", env=env)
        build(tmp, "bad", READER, [f"-I{tampered}", *link])
        expect_abort(tap, f"{title}: another layout is refused", [tmp / "bad"], r"quiesce: .*layout", env)


def check_copies(tap, opt, tmp, env):
    inc = f"-I{opt.include}"
    for title, loader, plugin in (("static program, shared plug-in", [opt.static, "-pthread"], [opt.shared]),
                                  ("static program, static plug-in", [opt.static, "-pthread"], [opt.static]),
                                  ("shared program, static plug-in", [opt.shared], [opt.static])):
        made = [build(tmp, "plugin.so", PLUGIN, ["-shared", "-fPIC", inc, *plugin]),
                build(tmp, "loader", LOADER, [inc, *loader, "-ldl"])]
        if not tap.result(all(m.returncode == 0 for m in made), f"{title}: builds", "".join(m.stderr for m in made)):
            continue
        expect_abort(tap, f"{title}: two copies are refused", [tmp / "loader", tmp / "plugin.so"],
                     r"quiesce: .*cop(y|ies)", env)
        tap.run(f"{title}: QUIESCE_ALLOW_COPIES=1 lets it go on", [tmp / "loader", tmp / "plugin.so"], text="went on",
                env={**env, "QUIESCE_ALLOW_COPIES": "1"})
    build(tmp, "plugin.so", PLUGIN, ["-shared", "-fPIC", inc, opt.shared])
    build(tmp, "loader", LOADER, [inc, opt.shared, "-ldl"])
    tap.run("shared program, shared plug-in: one copy", [tmp / "loader", tmp / "plugin.so"], text="went on", env=env)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", required=True)
    args.add_argument("--shared", required=True)
    args.add_argument("--static", required=True)
    opt = args.parse_args()
    opt.shared, opt.static = os.path.abspath(opt.shared), os.path.abspath(opt.static)
    env = {"LD_LIBRARY_PATH": os.path.dirname(opt.shared)}
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        check_layout(tap, opt, tmp, env)
        check_copies(tap, opt, tmp, env)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
