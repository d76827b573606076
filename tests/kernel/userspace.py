# SPDX-License-Identifier: MIT
"""The suites of the userspace library in a guest: the programs that they need, and the script that runs them.

Programs have the same paths in the guest, with their libraries; sh, env and the like are busybox's.
"""
import json
import os
import re
import shlex
import subprocess

# An emulator is slower than this machine by about so much.
SLOWER = 10

HEAD = """[ -n "$(ls /tmp)" ] || mount -t tmpfs tmp /tmp
mkdir -p /dev/shm /dev/pts /usr/bin
mount -t tmpfs shm /dev/shm
ip link set lo up
for name in env sh; do [ -e /usr/bin/$name ] || ln -s /bin/busybox /usr/bin/$name; done
say() {
	echo "$*" >/dev/kmsg
	echo "$*"
}
nr=0
run() { # NAME SECONDS COMMAND...
	name=$1
	seconds=$2
	shift 2
	nr=$((nr + 1))
	timeout -s KILL $seconds "$@" >/tmp/out 2>&1
	status=$?
	if [ $status -eq 77 ]; then
		say "ok $nr $name # SKIP its exit status is 77"
	elif [ $status -ne 0 ] || grep -q '^not ok' /tmp/out; then
		say "not ok $nr $name"
		echo "OUTPUT of $name, which ended with $status"
		tail -n 40 /tmp/out
	else
		say "ok $nr $name"
	fi
}
"""


def build(where, root):
    """Build the product and its tests in a directory; return None if that fails."""
    commands = [["ninja", "-C", where]]
    if not os.path.exists(os.path.join(where, "build.ninja")):
        commands.insert(0, ["meson", "setup", where, root])
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            print(done.stdout[-4000:])
            return None
    return where


def build_program(program, source, where, root):
    """Return a program that uses the static library."""
    return subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-I" + os.path.join(root, "include"), source,
                           os.path.join(where, "src/libquiesce.a"), "-o", program, "-pthread"], check=False).returncode == 0


def tests(where, suites, left_out=""):
    """Return the tests of some suites that a guest can run, and the number of others, which need a compiler or an interpreter, or whose
    names match left_out."""
    said = subprocess.run(["meson", "introspect", "--tests", where], stdout=subprocess.PIPE, text=True, check=True).stdout
    wanted = [t for t in json.loads(said) if {s.split(":")[-1] for s in t["suite"]} & set(suites)]
    fit = [t for t in wanted if not any("python" in os.path.basename(word) for word in t["cmd"][:1])]
    if left_out:
        fit = [t for t in fit if not re.search(left_out, t["name"])]
    return fit, len(wanted) - len(fit)


def named(where, test):
    """The words of a command and the parts of its environment that may be files."""
    for word in test["cmd"]:
        yield os.path.join(where, word)  # as it is, if it is absolute
    for value in test["env"].values():
        for part in value.replace(" ", ":").split(":"):
            if part.startswith("/"):
                yield part


def programs(where, chosen):
    """Files of the build, or of the sources, that the tests name; of directories the shared objects."""
    found = set()
    for test in chosen:
        for name in named(where, test):
            if name.startswith(("/usr/", "/bin/", "/lib")):
                continue
            if os.path.isfile(name):
                found.add(name)
            elif os.path.isdir(name) and name.startswith("/"):
                inside = [os.path.join(name, entry) for entry in os.listdir(name) if ".so" in entry]
                found.update(entry for entry in inside if os.path.isfile(entry))
    return sorted(found)


def command(test):
    """As meson runs it, but torture lasts longer, or it would see nothing."""
    longer = [re.sub(r"^--seconds=([\d.]+)$", lambda m: f"--seconds={float(m.group(1)) * SLOWER:g}", word) for word in test["cmd"]]
    words = ["env", f"TEST_SLOWER={SLOWER}"] + [f"{name}={value}" for name, value in test["env"].items()] + longer
    return " ".join(shlex.quote(word) for word in words)


def script(where, chosen):
    lines = [HEAD, f"cd {shlex.quote(where)} || exit 16", "tools/quiesce doctor", "say KTAP version 1", f"say 1..{len(chosen)}"]
    for test in chosen:
        lines.append(f"run {shlex.quote(test['name'].replace('#', ''))} {test['timeout'] * SLOWER} {command(test)}")
    return "\n".join(lines) + "\n"
