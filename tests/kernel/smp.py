# SPDX-License-Identifier: MIT
"""The userspace library in guests with many CPUs: what each of them runs.

An emulated CPU is a thread of this machine, so that 64 of them find few races in an hour: guests are for what depends on the number of
CPUs, and on which of them there are.
"""
import shlex

import userspace
from plan import Row

# A CPU that measures its delay loop, and a clock that is compared with another, need minutes where each CPU waits for a core of ours.
APPEND = "lpj=4000000 tsc=reliable nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# The kernel's own report when an emulated CPU goes offline, which has nothing to do with the library.
ALLOWED = r"WARNING: CPU: \d+ PID: \d+ at kernel/sched/core\.c:\d+ sched_cpu_dying"

# Functions that the cases call in the directory of the build; the rows say which CPUs PLUGGED, SETS and ALL are.
FUNCTIONS = r"""C=/sys/devices/system/cpu
G=/sys/fs/cgroup
up() { for cpu in "$@"; do echo 1 >$C/cpu$cpu/online || return; done; }
down() { for cpu in "$@"; do echo 0 >$C/cpu$cpu/online || return; done; }
online() { # CPUS
	now=$(cat $C/online)
	echo "online: $now"
	[ "$now" = "$1" ]
}
torture() { # TYPE SECONDS [OPTION...]; the watchdog of torture ends what hangs
	type=$1
	seconds=$2
	shift 2
	tools/quiesce torture --type=$type --fence=light --seconds=$seconds "$@"
}
planted() { # MUTANT TYPE SECONDS
	tools/quiesce-torture torture --mutant=$1 --type=$2 --fence=light --seconds=$3 --perturb=200
}
slots() { # KIND COMMAND...
	export QUIESCE_SLOTS=$1
	shift
	"$@"
}
fails() { # COMMAND...: what is broken has to be noticed: exit status 1
	"$@"
	[ $? -eq 1 ]
}
says() { # TEXT COMMAND...
	text=$1
	shift
	"$@" >/tmp/said
	status=$?
	cat /tmp/said
	[ $status -eq 0 ] && grep -q "$text" /tmp/said
}
only() { # CPUS COMMAND...: the command has these CPUs alone
	mkdir -p $G/only && echo $1 >$G/only/cpuset.cpus && echo $$ >$G/only/cgroup.procs || return
	shift
	"$@"
}
beside() { # FUNCTION CALLS COMMAND...: calls the function again and again while the command runs, so many times at least
	change=$1
	wanted=$2
	shift 2
	"$@" &
	pid=$!
	calls=0
	while kill -0 $pid 2>/dev/null; do
		$change || return
		calls=$((calls + 1))
	done
	wait $pid
	status=$?
	echo "$change: $calls calls, the command ended with $status"
	[ $status -eq 0 ] && [ $calls -ge $wanted ]
}
plug() { # CPUs go and come back; each change stops all CPUs, so that the command needs pauses to get on
	down $PLUGGED && sleep 0.5 && up $PLUGGED && sleep 0.5
}
most() { # CPUS SECONDS: brings CPUs up from the last to the first while there is time for it; at least so many have to be online
	end=$(($(cut -d. -f1 /proc/uptime) + $2))
	cpu=$(($(ls -d $C/cpu[0-9]* | wc -l) - 1))
	while [ $cpu -gt 1 ] && [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do
		up $cpu || return
		cpu=$((cpu - 1))
	done
	now=$(grep -c ^processor /proc/cpuinfo)
	echo "note: $now CPUs came, online: $(cat $C/online)" >/dev/kmsg
	[ $now -ge $1 ]
}
everywhere() { # COMMAND...: with as many readers as there are CPUs
	"$@" --readers=$(grep -c ^processor /proc/cpuinfo)
}
narrow() { # another process changes the CPUs of the group that the command is in, and then the masks of its threads
	for cpus in $SETS; do
		echo $cpus >$G/moved/cpuset.cpus || return
		sleep 0.1
	done
	echo $ALL >$G/moved/cpuset.cpus
	for cpus in $SETS; do
		for task in $(cat $G/moved/cgroup.threads); do taskset -p -c $cpus $task >/dev/null 2>&1; done
		sleep 0.1
	done
}
moved() { # COMMAND...
	mkdir -p $G/moved && echo $ALL >$G/moved/cpuset.cpus || return
	beside narrow 1 sh -c 'echo $$ >/sys/fs/cgroup/moved/cgroup.procs; exec sh /tmp/case "$@"' sh "$@"
}
"$@"
"""
GROUPS = "mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control || exit 18\n"
PRODUCT = ("tools/quiesce", "tools/quiesce-torture", "tests/torture/many_threads")
TYPES = ("rcu", "srcu", "percpu_rwsem", "percpu_ref", "slab", "shazptr", "hazptr")
BUSTED = ("busted", "busted_percpu_rwsem", "busted_shazptr")
# Names of the library's tests that no guest with many CPUs runs, with the reason, which is printed; the same of the programs of
# liburcu's short form.
LEFT_OUT = ((r"full fences", "full fences do not depend on the number of CPUs"),
            (r"perturbed|debug|memcheck|without rseq|[, ]clang", "other builds, and the library without sequences, run on the host"),
            (r"^torture( |,|$)|ten thousand threads|threads notice", "the other guests torture each type"),
            (r"walk_(map|skip|tree)", "each retirement interrupts all CPUs, which takes minutes in an emulator"),
            (r" in C\+\+|faces in|^properties", "the faces of C++ and sequences of one thread do not depend on the number of CPUs"),
            (r", suite faults", "forks take minutes in an emulator with many CPUs; guests with two run them"))
LIBURCU_LEFT_OUT = ((r" [ru]?perf ", "they measure"),
                    (r"dynlink|dynamic_link", "they test what the same programs with inlined calls test"))



class Case:
    """A call of one of FUNCTIONS, which fails after some seconds."""

    def __init__(self, name, seconds, *words):
        self.name, self.seconds, self.words = name, int(seconds), [str(word) for word in words]


def script(build, before, cases):
    """Return the script of a guest.  before: commands that make its CPUs what the cases want."""
    lines = [userspace.HEAD + GROUPS, "cat >/tmp/case <<'END'", FUNCTIONS + "END", f"cd {shlex.quote(build)} || exit 16", before,
             "say KTAP version 1", f"say 1..{len(cases)}"]
    for case in cases:
        words = " ".join(shlex.quote(word) for word in case.words)
        lines.append(f"run {shlex.quote(case.name)} {case.seconds} sh /tmp/case {words}")
    return "\n".join(lines) + "\n"


def torture(kind, seconds, *options, name="", before=()):
    """A run that the watchdog of torture did not end has hung itself."""
    return Case(name or f"torture {kind}", 300 + 2 * seconds, *before, "torture", kind, seconds, *options)


def noticed(kind, *options, before=()):
    return Case(f"torture notices {kind}", 600, "fails", *before, "torture", kind, 30, *options)


def controls():
    yield from map(noticed, BUSTED)
    yield Case("torture notices a planted bug", 300, "fails", "planted", "rwsem_no_drain", "percpu_rwsem", 30)
    yield Case("threads notice objects that are reclaimed at once", 60, "fails", "tests/torture/many_threads", "--threads=100", "--busted")


def guest(name, cpus, before, cases, **more):
    """Return a boot.  A machine that has other work needs a multiple of the seconds."""
    seconds = 300 + 5 * sum(max(case.seconds - 290, 20) for case in cases)
    return Row(name, "standard", (), "", **{"kind": "smp", "smp": cpus, "arguments": APPEND, "memory": 2048, "seconds": seconds, "before": before,
                                            "cases": cases, "product": PRODUCT, **more})


def sparse(possible, ids, seconds):
    """Most CPUs of this guest are never started, and a few with high numbers are: each costs what any CPU costs.

    One CPU boots: a kernel that rewrites its own code while another CPU runs it often dies under TCG.
    """
    last, wanted = max(ids), ",".join(str(cpu) for cpu in [0] + sorted(ids))
    before = f"""C=/sys/devices/system/cpu
for cpu in {' '.join(map(str, ids))}; do echo 1 >$C/cpu$cpu/online || exit 19; done
export ALL={wanted} SETS='{last} 0,{min(ids)} {",".join(map(str, sorted(ids)))}' PLUGGED='{last} {min(ids)}'"""
    by_cpu = ("slots", "cpu_id")
    cases = [Case("CPUs are online", 10, "online", wanted),
             Case("doctor", 60, "says", f"{possible} possible", "tools/quiesce", "doctor")]
    cases += [torture(kind, seconds, before=() if kind in ("rcu", "slab", "hazptr") else by_cpu) for kind in TYPES]
    cases += [torture("percpu_ref", seconds, name="torture percpu_ref on the last CPU", before=("only", last)),
              torture("percpu_rwsem", seconds, name="torture percpu_rwsem while CPUs go and come", before=("beside", "plug", 2)),
              torture("shazptr", seconds, name="torture shazptr while its CPUs are changed", before=("moved",)), *controls()]
    return guest("few CPUs with high numbers", possible, before, cases, append="maxcpus=1")


def many(cpus, seconds, threads):
    """All CPUs of this guest are online at first."""
    before = f"export ALL=0-{cpus - 1} SETS='{cpus - 1} 0,{cpus // 2} {cpus // 2}-{cpus - 1}' PLUGGED='{cpus - 1} {cpus - 2} {cpus // 2}'"
    cases = [Case("CPUs are online", 10, "online", f"0-{cpus - 1}"), Case("doctor", 280, "tools/quiesce", "doctor"),
             Case(f"{threads} threads", 600, "tests/torture/many_threads", f"--threads={threads}")]

    def full(kind, **more):
        """Readers of SRCU also sleep: a wait for as many as there are CPUs takes so long that a run would prove nothing."""
        return torture(kind, seconds, f"--readers={4 if kind == 'srcu' else cpus}", **more)

    cases += map(full, TYPES)
    cases += [full(kind, name=f"torture {kind} while CPUs go and come", before=("beside", "plug", 2))
              for kind in ("rcu", "srcu", "percpu_rwsem", "shazptr")]
    cases += [full(kind, name=f"torture {kind} while its CPUs are changed", before=("moved",)) for kind in ("srcu", "percpu_ref", "hazptr")]
    cases += [torture("rcu", seconds, "--readers=8", name="torture rcu on the last CPU", before=("only", cpus - 1)), *controls()]
    return guest("many CPUs, which go and come", cpus, before, cases)


# SRCU is not among them: its updates also wait for a reader that sleeps, and were too few in a minute.
CROSSED = ("percpu_ref", "shazptr", "rcu", "percpu_rwsem", "slab", "hazptr")


def crossed(seconds, kinds):
    """Few readers, which move over all CPUs.  As many as there are CPUs get so little done on this machine that their run proves nothing:
    each of their fences waits until each of those CPUs has had its turn."""
    yield from (torture(kind, 3 * seconds, "--readers=8", before=() if kind in ("rcu", "slab", "hazptr") else ("slots", "cpu_id")) for kind in kinds)


def together(cpus, seconds):
    """Many more CPUs are online than this machine has; broken types are noticed by as many readers."""
    cases = [Case("CPUs are online", 10, "online", f"0-{cpus - 1}"), Case("doctor", 600, "tools/quiesce", "doctor")]
    cases += [noticed(kind, f"--readers={cpus}") for kind in BUSTED] + list(crossed(seconds, CROSSED))
    return guest("many CPUs", cpus, "", cases)


def plugged(possible, wanted, budget, seconds):
    """CPUs are brought up one after another when the kernel runs already."""
    cases = [Case(f"at least {wanted} CPUs come", 2 * budget, "most", wanted, budget), Case("doctor", 600, "tools/quiesce", "doctor")]
    cases += [noticed(kind, before=("everywhere",)) for kind in BUSTED]
    cases += list(crossed(seconds, CROSSED[:3]))
    return guest("CPUs that are brought up later", possible, "", cases, append="maxcpus=1", memory=4096)


def short():
    """Return the plan of .ci/run: a guest of a minute."""
    yield sparse(128, (127, 70, 100), 4)


def full(seconds):
    """Return a plan of less than an hour.  seconds: of torture for each type."""
    yield sparse(128, (127, 70, 100), seconds)
    yield sparse(255, (254, 128, 200), seconds)
    yield many(16, seconds, 2000)
    yield together(64, seconds)
    yield plugged(255, 65, 240, seconds)
    yield suites("unit, conformance, faults", 16)
    yield suites("linear, torture, liburcu", 16, liburcu=LIBURCU_LEFT_OUT)


def suites(names, cpus, **more):
    """Return a boot that runs suites of the library's tests."""
    return Row("suites " + names, "standard", (), "", kind="smp", smp=cpus, arguments=APPEND, suites=names.split(", "), left_out=LEFT_OUT,
               memory=4096, seconds=7200, **more)
