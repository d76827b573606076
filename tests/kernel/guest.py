#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Boot a kernel in QEMU, run a shell script in it, and return its output.

The guest is an initramfs of busybox, the script and some files, which lie in /t; programs of this machine keep their
paths, with their libraries.  The kernel's log before the script is dropped: a busy host makes the kernel complain while
it boots.  QEMU always uses TCG, with a host thread for each CPU, so that stores are reordered as the host's are; /dev/kvm is
not used, because where it exists it may not work.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/t HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t debugfs debug /sys/kernel/debug
cd /t
echo "GUEST: start $(uname -r)"
dmesg -c >/dev/null
sh ./script </dev/null
status=$?
echo "GUEST: log"
dmesg
echo "GUEST: status $status taint $(cat /proc/sys/kernel/tainted) up $(cut -d' ' -f1 /proc/uptime)"
poweroff -f
"""
# An oops, a warning, a lockup, an object of the allocator written when it was free.
TAINTS = {1 << 5: "bad page or object", 1 << 7: "oops", 1 << 9: "warning", 1 << 14: "lockup"}
# Each machine has an emulator, words that describe it to that, and a console.
MACHINES = {"x86_64": ("qemu-system-x86_64", ("-machine", "q35", "-cpu", "max"), "ttyS0"),
            "arm64": ("qemu-system-aarch64", ("-machine", "virt", "-cpu", "max,pauth-impdef=on"), "ttyAMA0")}
NEEDS = ("cpio", "gzip")


def missing(machine="x86_64"):
    """Return the programs that are missing."""
    needs = (MACHINES[machine][0],) + (("busybox",) if machine == "x86_64" else ()) + NEEDS
    return [name for name in needs if not shutil.which(name)]


class Outcome:
    """The end of a guest: status is its script's, or None if it died or took too long."""

    def __init__(self, text, timed_out):
        self.text, self.timed_out = text, timed_out
        end = re.search(r"GUEST: status (\d+) taint (\d+) up ([\d.]+)", text)
        self.started = "GUEST: start" in text
        self.status = int(end.group(1)) if end else None
        taint = int(end.group(2)) if end else 0
        self.taints = [name for bit, name in TAINTS.items() if taint & bit]
        self.log = text.split("GUEST: log", 1)[-1].splitlines()

    def trouble(self):
        """Return the fault of this end in words; None if it is a success."""
        if self.timed_out:
            return "the guest took too long"
        if self.status is None:
            return "the guest died" if self.started else "the kernel did not boot"
        if self.status:
            return f"the script ended with {self.status}"
        return "the kernel complained: " + ", ".join(self.taints) if self.taints else None


def libraries(program):
    """Return the libraries of a program, and its loader."""
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


def add_program(root, program, system):
    """Under the same path as here; also a file that is no program.  Libraries that another system has are taken from its root."""
    name = os.path.abspath(program)
    for source, name in [(name, name)] + [(system + lib if os.path.exists(system + lib) else lib, lib) for lib in libraries(program)]:
        to = root + name
        if not os.path.exists(to):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(source, to)  # what a link points to


def add_foreign(root, programs, system):
    """Programs for another CPU, which have all libraries of their system that lie beside its C library."""
    found = [name for where in ("lib/*-linux-gnu", "usr/lib/*-linux-gnu") for name in glob.glob(f"{system}/{where}/*.so*")]
    found += glob.glob(f"{system}/lib/ld-linux*")
    for source, name in [(name, name) for name in map(os.path.abspath, programs)] + [(name, name[len(system):]) for name in found]:
        os.makedirs(os.path.dirname(root + name), exist_ok=True)
        shutil.copy(source, root + name)


def initramfs(root, script, files, programs, system, machine):
    for name in ("bin", "proc", "sys", "dev", "t", "tmp"):
        os.makedirs(os.path.join(root, name))
    shutil.copy(shutil.which("busybox") if machine == "x86_64" else system + "/bin/busybox", os.path.join(root, "bin/busybox"))
    for name in files:
        shutil.copy(name, os.path.join(root, "t"))
    if machine != "x86_64":
        add_foreign(root, programs, system)
        programs = ()
    for name in programs:
        add_program(root, name, system)
    for name, text in (("init", INIT), ("t/script", script)):
        with open(os.path.join(root, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(os.path.join(root, name), 0o755)


def command(machine, vmlinuz, initrd, smp, append, icount, memory):
    accel = "tcg,thread=single" if icount else "tcg,thread=multi"
    program, words, console = MACHINES[machine]
    qemu = [program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *words,
            "-accel", accel, "-smp", str(smp), "-m", str(memory), "-serial", "stdio", "-kernel", vmlinuz,
            "-initrd", initrd, "-append", f"console={console} loglevel=1 panic=-1 oops=panic log_buf_len=4M printk.devkmsg=on {append}"]
    return qemu + (["-icount", "shift=0,sleep=off"] if icount else [])


def boot(vmlinuz, script, files=(), programs=(), system="", smp=2, append="", icount=False, memory=768, timeout=120,
         machine="x86_64"):
    """Boot and wait.  system: the root of a system whose libraries the programs get, if it has them; of another machine it has all.

    A kernel that dies before our script begins is booted again: TCG with several threads is not always right where
    kernels rewrite their own code.
    """
    for _ in range(3):
        outcome = boot_once(vmlinuz, script, files, programs, system, smp, append, icount, memory, timeout, machine)
        if outcome.started or outcome.timed_out:
            break
        print("\rthe kernel died before it reached the script: booted again", flush=True)
    return outcome


def boot_once(vmlinuz, script, files, programs, system, smp, append, icount, memory, timeout, machine):
    """The guest is ended when it takes longer, and when we are."""
    with tempfile.TemporaryDirectory(prefix="quiesce-guest-") as work:
        root = os.path.join(work, "root")
        initramfs(root, script, files, programs, system, machine)
        initrd = os.path.join(work, "initrd")
        subprocess.run(f"find . | cpio -o -H newc --quiet -R 0:0 | gzip -1 >{initrd}", shell=True, cwd=root, check=True)
        with open(os.path.join(work, "out"), "w+b") as out:
            guest = subprocess.Popen(command(machine, vmlinuz, initrd, smp, append, icount, memory), stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT)
            try:
                guest.wait(timeout)
                timed_out = False
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                guest.kill()
                guest.wait()
            out.seek(0)
            return Outcome(out.read().decode(errors="replace").replace("\r", ""), timed_out)
