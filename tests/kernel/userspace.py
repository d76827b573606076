# SPDX-License-Identifier: MIT
"""The suites of the userspace library in a guest: the programs that they need, and the script that runs them.

Programs have the same paths in the guest, with their libraries; sh, env and the like are busybox's.
"""
import json
import os
import re
import shlex
import subprocess
import sys

# An emulator is slower than this machine by about so much.
SLOWER = 10
INTERPRETER = "they need a compiler or an interpreter"

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
		say "ok $nr $name # SKIP its exit status is 77: $(tail -n 1 /tmp/out | tr -d '#')"
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


def tests(where, suites, left_out=()):
    """Return the tests of some suites that a guest can run, and the number of others for each reason.

    left_out: pairs of an expression, which matches "NAME, suite SUITE" of tests, and the reason for which those do not run.
    """
    said = subprocess.run(["meson", "introspect", "--tests", where], stdout=subprocess.PIPE, text=True, check=True).stdout
    fit, left = [], {}
    for test in json.loads(said):
        if not {s.split(":")[-1] for s in test["suite"]} & set(suites):
            continue
        name = test["name"] + "".join(", suite " + suite.split(":")[-1] for suite in test["suite"])
        why = INTERPRETER if "python" in os.path.basename(test["cmd"][0]) else reason(name, left_out)
        if why:
            left[why] = left.get(why, 0) + 1
        else:
            fit.append(test)
    return fit, left


def reason(name, left_out):
    return next((why for names, why in left_out if re.search(names, name)), None)


def liburcu(where, work, root, cpus, left_out):
    """Return the runs of the short form of liburcu's own programs, compiled against the face, and the number of others for each reason."""
    plan = os.path.join(work, "runs.json")
    done = subprocess.run([sys.executable, os.path.join(root, "tests/liburcu/suite.py"), "--library=face", "--build", where, "--work",
                           work, "--plan", plan, "--cpus", str(cpus)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        return [], {(done.stdout.strip().splitlines() or ["?"])[-1]: 1}
    fit, left = [], {}
    with open(plan, encoding="utf-8") as f:
        for run in json.load(f):
            why = reason(run["name"], left_out)
            if why:
                left[why] = left.get(why, 0) + 1
            else:
                fit.append(run)
    return fit, left


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
    found = {os.path.join(where, "tools/quiesce")}
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


# liburcu's programs are judged as tests/liburcu/suite.py judges them: by status, TAP, counts of a stress test, and warnings.
JUDGE = r"""said=$(mktemp)
trap 'cat $said; rm -f $said' EXIT
"$@" >$said 2>&1 || exit 1
! grep -qE 'WARNING! Discrepancy|nodes were leaked' $said || exit 1
sed -n 's/.*rcu_stress_count: //p' $said | awk '{ for (i = 3; i <= NF; i++) bad += $i } END { exit bad > 0 }' || exit 1
planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' $said | head -n 1)
[ -z "$planned" ] || [ $planned -eq $(grep -c '^ok ' $said) ]
"""


def line(test):
    return f"run {shlex.quote(test['name'].replace('#', ''))} {test['timeout'] * SLOWER} {command(test)}"


def script(where, chosen, runs=()):
    """Return the script of a guest.  chosen: tests; runs: of liburcu's programs."""
    lines = [HEAD, "cat >/tmp/judge <<'END'\n" + JUDGE + "END", f"cd {shlex.quote(where)} || exit 16", "tools/quiesce doctor", "say KTAP version 1",
             f"say 1..{len(chosen) + len(runs)}"]
    lines += map(line, chosen)
    for one in runs:
        lines.append(f"run {shlex.quote('liburcu: ' + one['name'])} {one['timeout'] * SLOWER} sh /tmp/judge {command({**one, 'cmd': one['argv']})}")
    return "\n".join(lines) + "\n"
