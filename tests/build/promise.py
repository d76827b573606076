#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that promises light fences runs with them, and ends before main() without them; its protections do not test for them."""
import argparse
import os
import re
import sys

from tap import Tap, execute


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--program", required=True)
    args.add_argument("--objdump", default="objdump")
    opt = args.parse_args()
    tap = Tap()
    env = {name: value for name, value in os.environ.items() if name != "QUIESCE_FENCE"}
    full = execute([opt.program], env={**env, "QUIESCE_FENCE": "full"})
    said = "compiled with QUIESCE_LIGHT_FENCES_ONLY, but has full fences"
    tap.result(full.returncode not in (0, 1, 2, 3) and said in full.stderr and "reached main" not in full.stdout,
               "full fences end it before main()", f"status {full.returncode}\n{full.stdout}{full.stderr}")
    light = execute([opt.program], env=env)
    if "membarrier: there" in light.stderr or said not in light.stderr:
        tap.result(light.returncode == 0 and "reached main" in light.stdout, "with light fences it runs",
                   f"status {light.returncode}\n{light.stdout}{light.stderr}")
    else:
        tap.skip("with light fences it runs", "the kernel has no membarrier for it")
    calls = execute([opt.objdump, "-dr", "--no-show-raw-insn", opt.program]).stdout
    tap.result(not re.search(r"quiesce__hazptr_protect_slow@|quiesce__hazptr_set_slow@", calls), "protections have no call")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
