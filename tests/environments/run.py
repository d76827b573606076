#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs, runtimes, allocators, tools and forms of a build that users have: the library works in each.

    run.py [--only TEXT] [--table] [--prefix DIR]

Each environment loads or links plug.c, which uses every primitive in the host's threads and in its own.  Packages of Debian; an environment
whose packages are not installed is skipped.  --table prints the rows of docs/platforms.md.  --prefix is an installed library; without it
the library is built and installed into a temporary directory.  Prints TAP.
"""
import argparse
import contextlib
import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOOD = "result 0"
TIMEOUT_S = 120


class Missing(Exception):
    """A part of the environment is not installed."""


class Failed(Exception):
    """The library does not work there."""


class Trial:
    """A trial has a directory, and runs the commands of one environment in it."""

    def __init__(self, prefix, where):
        self.lib, self.include, self.where = prefix / "lib", prefix / "include", where
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(self.lib), "TMPDIR": str(where)}
        self.link = [f"-L{self.lib}", f"-Wl,-rpath,{self.lib}", "-lquiesce", "-pthread"]

    def run(self, *command, good=None, env=None, **more):
        """Run a command; its output has to match @good, if that is given."""
        command = [str(c) for c in command]
        if not shutil.which(command[0]):
            raise Missing(command[0])
        try:
            run = subprocess.run(command, cwd=self.where, env={**self.environment, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace", timeout=TIMEOUT_S, check=False, **more)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{' '.join(command)}\nhas not ended after {TIMEOUT_S} s") from error
        if run.returncode or (good and not re.search(good, run.stdout)):
            raise Failed(f"{' '.join(command)}\nstatus {run.returncode}\n{run.stdout[-3000:]}")
        return run.stdout

    def start(self, *command, env=None):
        """Start a server, which ends with the trial."""
        if not shutil.which(str(command[0])):
            raise Missing(command[0])
        return subprocess.Popen([str(c) for c in command], cwd=self.where, env={**self.environment, **(env or {})}, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def build(self, *sources, output, flags=(), compiler="gcc"):
        self.run(compiler, "-g", f"-I{self.include}", f"-I{HERE}", *(HERE / s for s in sources), "-o", self.where / output, *flags)
        return self.where / output

    def plugin(self, *sources, flags=(), output="plug.so"):
        return self.build(*sources, "plug.c", output=output, flags=["-O2", "-fPIC", "-shared", *flags, *self.link])

    def program(self, *sources, flags=(), compiler="gcc"):
        return self.build(*sources, output="try", flags=["-O2", *flags, *self.link], compiler=compiler)

    def plain(self):
        return self.program("try.c", "plug.c")

    def needs(self, path):
        if not pathlib.Path(path).exists():
            raise Missing(path)


@contextlib.contextmanager
def server(process):
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(condition, what):
    for _ in range(200):
        if found := condition():
            return found
        time.sleep(0.1)
    raise Failed(f"{what}: not seen within 20 s")


@dataclasses.dataclass
class Environment:
    group: str
    name: str
    how: str
    version: list
    body: object


ENVIRONMENTS = []


def environment(group, name, how, *version):
    def add(body):
        ENVIRONMENTS.append(Environment(group, name, how, version, body))
        return body
    return add


# ---- programs that load a plug-in ----

@environment("program", "PostgreSQL", "a C function, in the postmaster before it forks (shared_preload_libraries) and in backends", "psql", "--version")
def postgresql(t):
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        raise Missing("postgresql")
    include = t.run("pg_config", "--includedir-server").strip()
    t.needs(f"{include}/postgres.h")
    plug = t.plugin("postgres.c", flags=[f"-I{include}"])
    user = [] if os.geteuid() else ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    for path in (t.where, *t.where.parents):
        if os.geteuid() == 0 and path != pathlib.Path("/") and path != pathlib.Path("/tmp"):
            os.chmod(path, 0o777 if path == t.where else 0o755)
    data = t.where / "data"
    t.run(*user, found[-1] / "initdb", "-A", "trust", "-D", data)
    (data / "postgresql.auto.conf").write_text(f"shared_preload_libraries = '{plug}'\nlisten_addresses = ''\nunix_socket_directories = '{t.where}'\n")
    sql = f"CREATE FUNCTION try_quiesce() RETURNS int AS '{plug}' LANGUAGE C; SELECT 'result ' || try_quiesce();"
    with server(t.start(*user, found[-1] / "postgres", "-D", data)):
        until((t.where / ".s.PGSQL.5432").exists, "the server's socket")
        time.sleep(0.5)
        for statement in (sql, "SELECT 'result ' || try_quiesce();"):
            t.run(*user, "psql", "-h", t.where, "-Atc", statement, "postgres", good=GOOD)


@environment("program", "nginx", "a handler in two workers, and in the master before it forks them", "nginx", "-v")
def nginx(t):
    t.needs("/usr/share/nginx/src/configure")
    source = t.where / "src"
    shutil.copytree("/usr/share/nginx/src", source, symlinks=False)
    t.plugin(output="libplug.so")
    t.run("sh", "-c", f"cd {source} && TRY_LIBS='-L{t.where} -Wl,-rpath,{t.where} -lplug' ./configure --with-compat "
          f"--add-dynamic-module={HERE}/nginx && make -s -f objs/Makefile modules")
    (t.where / "nginx.conf").write_text(
        f"load_module {source}/objs/ngx_http_try_module.so;\npid {t.where}/pid;\ndaemon off;\nworker_processes 2;\nerror_log {t.where}/error.log;\nevents {{}}\n"
        f"http {{ access_log off; {temporary(t)} server {{ listen unix:{t.where}/socket; location / {{ try_quiesce; }} }} }}\n")
    with server(t.start("nginx", "-c", t.where / "nginx.conf")):
        until((t.where / "socket").exists, "the server's socket")
        for _ in range(4):
            t.run("curl", "-s", "--unix-socket", t.where / "socket", "http://localhost/", good=GOOD)


def temporary(t):
    return " ".join(f"{kind}_temp_path {t.where}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


@environment("program", "SQLite", "an extension", "sqlite3", "--version")
def sqlite(t):
    t.needs("/usr/include/sqlite3ext.h")
    plug = t.plugin("sqlite.c")
    t.run("sqlite3", ":memory:", f".load {plug}", "SELECT 'result ' || try_quiesce();", good=GOOD)


def preloaded(t, command, act=None):
    """An unchanged program whose every process uses the library in a thread."""
    plug = t.plugin("preload.c")
    report = t.where / "report"
    report.touch()
    for path in (t.where, report):
        os.chmod(path, 0o777)

    def lines():
        return report.read_text().splitlines()

    with server(t.start(*command, env={"LD_PRELOAD": str(plug), "TRY_REPORT": str(report)})):
        until(lambda: any(line.startswith("program") for line in lines()), "the program's report")
        if act:
            act()
            until(lambda: any(line.startswith("child") for line in lines()), "the report of a child")
    bad = [line for line in lines() if not line.endswith("good")]
    if bad:
        raise Failed("\n".join(bad))


@environment("program", "Redis", "preloaded: the server, and the child that saves", "redis-server", "--version")
def redis(t):
    socket = t.where / "redis"

    def save():
        until(socket.exists, "the server's socket")
        t.run("redis-benchmark", "-s", socket, "-n", "20000", "-r", "1000", "-q", "-t", "set,get")
        t.run("redis-cli", "-s", socket, "bgsave", good="started")
    # The delay for each key keeps the child for some seconds.
    preloaded(t, ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", t.where, "--rdb-key-save-delay", "2000"], save)


@environment("program", "Apache httpd", "preloaded: the parent, and the children of mpm_event", "apachectl", "-v")
def apache(t):
    t.needs("/usr/lib/apache2/modules/mod_mpm_event.so")
    (t.where / "conf").write_text("".join(f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so\n" for m in ("mpm_event", "authz_core")) +
                                  f"ServerName localhost\nListen 127.0.0.1:18080\nPidFile {t.where}/pid\nErrorLog {t.where}/error.log\nDocumentRoot {t.where}\n"
                                  "User www-data\nGroup www-data\n")
    preloaded(t, ["apache2", "-D", "FOREGROUND", "-f", t.where / "conf"], lambda: None)


# ---- languages ----

@environment("language", "CPython", "ctypes, from threads, and in a child of os.fork()", "python3", "--version")
def cpython(t):
    plug = t.plugin()
    t.run("python3", "-c", f"import ctypes, os, threading; try_ = ctypes.CDLL('{plug}').quiesce_try\n"
          "thread = threading.Thread(target=lambda: print('thread', try_())); thread.start(); thread.join()\n"
          "pid = os.fork()\nif not pid: os._exit(try_())\nprint('result', try_() or os.waitpid(pid, 0)[1])", good=GOOD)


@environment("language", "Java", "JNI, four threads, garbage collections", "java", "--version")
def java(t):
    if not shutil.which("javac"):
        raise Missing("javac")
    home = pathlib.Path(os.path.realpath(shutil.which("javac"))).parent.parent
    t.needs(home / "include/jni.h")
    plug = t.plugin("java.c", flags=[f"-I{home}/include", f"-I{home}/include/linux"])
    t.run("javac", "-d", t.where, HERE / "Try.java")
    t.run("java", "-cp", t.where, "-Xcheck:jni", "Try", plug, good=GOOD)


@environment("language", "Go", "cgo, goroutines", "go", "version")
def golang(t):
    t.plugin(output="libplug.so")
    module = t.where / "try"
    module.mkdir()
    for name in ("try.go", "plug.h"):
        shutil.copy(HERE / name, module)
    (module / "go.mod").write_text("module try\n\ngo 1.19\n")
    t.run("sh", "-c", f"cd {module} && go run .", good=GOOD, env={"CGO_LDFLAGS": f"-L{t.where} -lplug -Wl,-rpath,{t.where}", "GOFLAGS": "-mod=mod", "GOCACHE": str(t.where / "cache"),
                                           "CGO_ENABLED": "1"})


@environment("language", "Rust", "extern functions, scoped threads", "rustc", "--version")
def rust(t):
    t.plugin(output="libplug.so")
    t.run("rustc", "-O", "-L", t.where, "-l", "plug", "-C", f"link-arg=-Wl,-rpath,{t.where}", HERE / "try.rs", "-o", t.where / "try")
    t.run(t.where / "try", good=GOOD)


@environment("language", "Lua", "a module", "lua5.4", "-v")
def lua(t):
    t.needs("/usr/include/lua5.4/lua.h")
    t.plugin("lua.c", flags=["-I/usr/include/lua5.4"])
    t.run("lua5.4", "-e", f"package.cpath = '{t.where}/?.so'; print('result ' .. require('plug')())", good=GOOD)


@environment("language", "Perl", "FFI::Platypus", "perl", "-e", "print $^V")
def perl(t):
    if subprocess.run(["perl", "-MFFI::Platypus", "-e", "1"], capture_output=True, check=False).returncode:
        raise Missing("libffi-platypus-perl")
    plug = t.plugin()
    t.run("perl", "-MFFI::Platypus", "-e", f"my $f = FFI::Platypus->new(api => 1, lib => '{plug}'); print 'result ', "
          "$f->function('quiesce_try', [] => 'int')->call(), \"\\n\"", good=GOOD)


@environment("language", "Ruby", "Fiddle", "ruby", "--version")
def ruby(t):
    plug = t.plugin()
    t.run("ruby", "-rfiddle", "-e", f"f = Fiddle::Function.new(Fiddle.dlopen('{plug}')['quiesce_try'], [], Fiddle::TYPE_INT); "
          "puts \"result #{Thread.new { f.call }.value}\"", good=GOOD)


@environment("language", "PHP", "FFI", "php", "-v")
def php(t):
    plug = t.plugin()
    t.run("php", "-d", "ffi.enable=1", "-r", f"echo 'result ', FFI::cdef('int quiesce_try(void);', '{plug}')->quiesce_try();", good=GOOD)


# ---- frameworks with threads of their own ----

@environment("framework", "OpenMP", "a parallel loop", "gcc", "--version")
def openmp(t):
    t.run(t.program("openmp.c", "plug.c", flags=["-fopenmp"]), good=GOOD)


@environment("framework", "oneTBB", "parallel_for", "pkg-config", "--modversion", "tbb")
def tbb(t):
    plug = t.plugin(output="libplug.so")
    t.needs("/usr/include/tbb/parallel_for.h")
    t.run(t.program("tbb.cpp", compiler="g++", flags=[plug, f"-Wl,-rpath,{t.where}", "-ltbb"]), good=GOOD)


@environment("framework", "libuv", "the thread pool", "pkg-config", "--modversion", "libuv")
def libuv(t):
    t.needs("/usr/include/uv.h")
    t.run(t.program("libuv.c", "plug.c", flags=["-luv"]), good=GOOD)


# ---- allocators, tools, and forms of a build: the same program ----

def preload(name, pattern):
    @environment("allocator", name, "LD_PRELOAD", "dpkg-query", "-W", "-f", "${Version}", pattern.rpartition(" ")[2])
    def body(t):
        found = sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob(pattern.partition(" ")[0]))
        if not found:
            raise Missing(pattern)
        t.run(t.plain(), good="live objects", env={"LD_PRELOAD": str(found[-1])})
    return body


preload("jemalloc", "libjemalloc.so.2 libjemalloc2")
preload("mimalloc", "libmimalloc.so.* libmimalloc2.0")
preload("tcmalloc", "libtcmalloc_minimal.so.4 libtcmalloc-minimal4")


@environment("allocator", "glibc, every check", "MALLOC_CHECK_, MALLOC_PERTURB_, one arena", "getconf", "GNU_LIBC_VERSION")
def malloc_checks(t):
    t.run(t.plain(), good="live objects", env={"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "170",
                                               "MALLOC_ARENA_MAX": "1"})


def tool(name, *command, env=None, version=None):
    @environment("tool", name, "the program under it", *(version or [command[0], "--version"]))
    def body(t):
        t.run(*command, t.plain(), good="live objects", env=env)
    return body


tool("strace", "strace", "-f", "-o", "trace")
tool("gdb", "gdb", "-q", "-batch", "-ex", "run", "--args")
tool("valgrind", "valgrind", "--fair-sched=try", "-q", "--error-exitcode=3")
tool("faketime", "faketime", "2001-01-01")
tool("fakeroot", "fakeroot")
tool("eatmydata", "eatmydata", version=["dpkg-query", "-W", "-f", "${Version}", "eatmydata"])
tool("PRoot", "proot", "-0")
tool("QEMU's user emulation", "qemu-x86_64-static")


def form(name, compiler, *flags, static=False, version=None):
    @environment("build", name, "the program built so", *(version or [compiler, "--version"]))
    def body(t):
        link = [t.lib / "libquiesce.a", "-pthread"] if static else t.link
        t.run(t.build("try.c", "plug.c", output="try", flags=[*flags, *link], compiler=compiler), good="live objects")
    return body


for each in ("gcc", "clang-19"):
    form(f"{each} -O0", each, "-O0")
    form(f"{each} -O3 -march=native", each, "-O3", "-march=native")
    form(f"{each} -Ofast -flto", each, "-Ofast", "-flto", *(["--ld-path=/usr/lib/llvm-19/bin/ld.lld"] if each != "gcc" else []))
    form(f"{each}, position dependent", each, "-O2", "-no-pie", "-fno-pie")
    form(f"{each}, static position independent", each, "-O2", "-static-pie", "-fPIE", static=True)
    form(f"{each}, hardened", each, "-O2", "-D_FORTIFY_SOURCE=3", "-fstack-protector-all", "-fcf-protection=full", "-fstack-clash-protection",
         "-Wl,-z,relro,-z,now")
    form(f"{each}, sections without use removed", each, "-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", static=True)
    form(f"{each}, AddressSanitizer and UndefinedBehaviorSanitizer", each, "-O1", "-fsanitize=address,undefined")
form("gcc -mcmodel=large", "gcc", "-O2", "-mcmodel=large")
form("gcc -pg", "gcc", "-O2", "-pg")
form("gcc --coverage", "gcc", "-O1", "--coverage")
form("gcc -finstrument-functions", "gcc", "-O2", "-finstrument-functions")
form("linker: gold", "gcc", "-O2", "-fuse-ld=gold", version=["ld.gold", "--version"])
form("linker: lld", "clang-19", "-O2", "-fuse-ld=lld", version=["ld.lld", "--version"])
form("linker: mold", "clang-19", "-O2", "-fuse-ld=mold", version=["mold", "--version"])


# ---- the run ----

def version_of(env):
    if not shutil.which(env.version[0]):
        return None
    run = subprocess.run(env.version, capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r"\d+(?:\.\d+)+", run.stdout + run.stderr)
    return found[0] if found else "-"


def attempt(env, prefix):
    """Return None if the library works there; raises Missing or Failed."""
    with tempfile.TemporaryDirectory(prefix="quiesce-", ignore_cleanup_errors=True) as name:
        env.body(Trial(prefix, pathlib.Path(name)))


def install(where):
    build, prefix = where / "build", where / "prefix"
    for command in (["meson", "setup", build, ROOT, "--prefix", prefix, "-Dtests=false", "-Dtool=disabled", "-Dliburcu=false"],
                    ["meson", "install", "-C", build, "--quiet"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return prefix


def main():
    args = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    args.add_argument("--only", default="", help="environments whose name has this text")
    args.add_argument("--table", action="store_true", help="print the rows of docs/platforms.md")
    args.add_argument("--prefix", type=pathlib.Path, help="an installed library")
    opt = args.parse_args()
    chosen = [e for e in ENVIRONMENTS if opt.only.lower() in e.name.lower()]
    bad, today = 0, datetime.date.today().isoformat()
    with tempfile.TemporaryDirectory(prefix="quiesce-") as name:
        os.chmod(name, 0o755)
        prefix = (opt.prefix or install(pathlib.Path(name))).resolve()
        for number, env in enumerate(chosen, 1):
            result, details = "works", ""
            try:
                attempt(env, prefix)
            except Missing as error:
                result = f"skipped: {error} is not installed"
            except Failed as error:
                result, details = "fails", str(error)
                bad += 1
            version = version_of(env) if result == "works" else None
            if opt.table:
                print(f"| {env.group} | {env.name} | {version or '-'} | {env.how} | {result}, {today} |", flush=True)
            else:
                print(f"{'not ok' if details else 'ok'} {number} - {env.group}: {env.name}{' # SKIP ' + result[9:] if result.startswith('skipped') else ''}", flush=True)
            for line in details.splitlines():
                print("#   ", line, file=sys.stderr)
    if not opt.table:
        print(f"1..{len(chosen)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
