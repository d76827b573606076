#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program of another language, with nothing but quiesce/calls.h and the shared library: what calls.py runs.

    bindings.py LIBRARY NAME=VALUE...

NAME is a structure, whose size is VALUE, or `layout`.
"""
import ctypes as c
import os
import sys
import threading
import time

P, INT, SIZE, LONG, BOOL, U64 = c.c_void_p, c.c_int, c.c_size_t, c.c_ulong, c.c_bool, c.c_uint64
CALLBACK = c.CFUNCTYPE(None, P)


class Library:
    def __init__(self, path):
        self.lib, self.libc = c.CDLL(path), c.CDLL(None)
        self.libc.aligned_alloc.restype, self.libc.aligned_alloc.argtypes = P, [SIZE, SIZE]

    def __getattr__(self, name):
        """The function quiesce_NAME, of addresses and integers, which returns an address."""
        function = getattr(self.lib, "quiesce_" + name)

        def call(*arguments, result=P):
            function.restype, function.argtypes = result, [type(a) if isinstance(a, (c._SimpleCData, c._CFuncPtr)) else P for a in arguments]
            return function(*arguments)
        return call

    def object(self, size):
        """Memory of zeros for free(), aligned as the library's structures are; what ctypes allocates is not."""
        address = self.libc.aligned_alloc(64, -(-size // 64) * 64)
        c.memset(address, 0, size)
        return address


def check(ok, what):
    if not ok:
        print(f"failed: {what}")
        os._exit(1)  # pylint: disable=protected-access


def variable(address=None):
    return P(address)


def where(of):
    return c.addressof(of)


def rcu(q):
    current = variable()
    old, fresh = q.object(64), q.object(64)
    entered, leave, waited = threading.Event(), threading.Event(), threading.Event()
    q.rcu_assign_pointer(where(current), old, result=None)

    def reader():
        q.rcu_read_lock(result=None)
        check(q.rcu_read_lock_held(result=INT), "the reader is inside")
        check(q.rcu_dereference(where(current)) == old, "rcu_dereference()")
        entered.set()
        leave.wait()
        check(not waited.is_set(), "synchronize_rcu() waits for the reader")
        q.rcu_read_unlock(result=None)
        check(not q.rcu_read_lock_held(result=INT), "the reader is outside")

    def updater():
        check(q.rcu_xchg_pointer(where(current), fresh) == old, "rcu_xchg_pointer()")
        q.synchronize_rcu(result=None)
        waited.set()

    threads = [threading.Thread(target=reader), threading.Thread(target=updater)]
    threads[0].start()
    entered.wait()
    threads[1].start()
    time.sleep(0.1)
    leave.set()
    for thread in threads:
        thread.join()
    check(waited.is_set(), "synchronize_rcu() returns")
    expected = variable(old)
    check(not q.rcu_try_cmpxchg_pointer(where(current), where(expected), old, result=BOOL) and expected.value == fresh, "a failed exchange")
    check(q.rcu_cmpxchg_pointer(where(current), fresh, None) == fresh and not q.rcu_access_pointer(where(current)), "an exchange")
    called = []
    callback = CALLBACK(called.append)
    q.call_rcu(old, callback, SIZE(64), result=None)
    q.kfree_rcu(fresh, SIZE(8), SIZE(64), result=None)
    q.kfree_rcu(None, SIZE(8), SIZE(64), result=None)
    q.rcu_barrier(result=None)
    check(called == [old], "a callback in Python has run")


def refused(q):
    """An offset that would be taken for a function is reported, and the object stays."""
    kinds = []
    hook = c.CFUNCTYPE(None, INT, c.c_char_p)(lambda kind, text: kinds.append(text))
    q.set_misuse_hook(hook, result=None)
    q.kfree_rcu(q.object(8192), SIZE(4096), SIZE(8192), result=None)
    q.kfree_hazptr(q.object(8192), SIZE(5000), SIZE(8192), result=None)
    q.rcu_barrier(result=None)
    check(len(kinds) == 2 and b"4096" in kinds[0] and b"5000" in kinds[1], "an offset that is too large is reported")
    q.set_misuse_hook(None, result=None)


def srcu(q, size):
    domain = q.object(size["srcu_struct"])
    check(q.init_srcu_struct(c.c_uint32(size["layout"]), domain, c.c_char_p(b"python"), result=INT) == 0, "init_srcu_struct()")
    index = q.srcu_read_lock(domain, result=INT)
    cookie = q.start_poll_synchronize_srcu(domain, result=U64)
    check(not q.poll_state_synchronize_srcu(domain, U64(cookie), result=INT), "a section is open")
    q.srcu_read_unlock(domain, INT(index), result=None)
    q.synchronize_srcu(domain, result=None)
    index = q.srcu_down_read(domain, result=INT)
    q.srcu_up_read(domain, INT(index), result=None)
    q.cleanup_srcu_struct(domain, result=None)


def hazptr(q):
    current, gone = variable(q.object(64)), []
    deleter = CALLBACK(gone.append)
    slot = q.hazptr_alloc(None)
    found = q.hazptr_protect(slot, where(current), SIZE(0))
    check(found == current.value, "hazptr_protect()")
    q.rcu_xchg_pointer(where(current), None)
    q.hazptr_retire(found, deleter, SIZE(64), result=None)
    check(not q.hazptr_try_barrier(result=BOOL) and not gone, "a protected object stays")
    q.hazptr_clear(slot, result=None)
    q.hazptr_barrier(result=None)
    check(gone == [found], "an object without protection goes")
    q.hazptr_set(slot, found, result=None)
    q.hazptr_free(None, slot, result=None)
    q.synchronize_hazptr(found, result=None)
    q.kfree_hazptr(q.object(64), SIZE(16), SIZE(64), result=None)
    q.hazptr_barrier(result=None)


def tables(q, size):
    hashmap = q.object(size["hashmap"])
    check(q.hashmap_init(hashmap, result=INT) == 0, "hashmap_init()")
    for key in range(1, 1000):
        check(q.hashmap_insert(hashmap, U64(key), U64(key * 2), None, result=INT) == 0, "hashmap_insert()")
    q.rcu_read_lock(result=None)
    check(all(q.hashmap_lookup(hashmap, U64(key), result=U64) == key * 2 for key in range(1, 1000)), "hashmap_lookup()")
    q.rcu_read_unlock(result=None)
    check(q.hashmap_count(hashmap, result=SIZE) == 999, "hashmap_count()")
    q.hashmap_destroy(hashmap, result=None)

    number = c.CFUNCTYPE(U64, P, U64)(lambda key, seed: q.hash_bytes(key, SIZE(8), U64(seed), result=U64))
    its_key = c.CFUNCTYPE(P, P)(lambda thing: thing)
    equal = c.CFUNCTYPE(BOOL, P, P)(lambda thing, key: c.string_at(thing, 8) == c.string_at(key, 8))
    kind = (P * 3)(*[c.cast(f, P).value for f in (number, its_key, equal)])
    table, key = q.object(size["hashtable"]), U64(7)
    thing = q.object(64)
    U64.from_address(thing).value = 7
    check(q.hashtable_init(table, where(kind), result=INT) == 0, "hashtable_init()")
    check(q.hashtable_insert(table, thing, result=INT) == 0, "hashtable_insert()")
    q.rcu_read_lock(result=None)
    check(q.hashtable_lookup(table, where(kind), where(key)) == thing, "hashtable_lookup()")
    q.rcu_read_unlock(result=None)
    check(q.hashtable_remove_key(table, where(key)) == thing, "hashtable_remove_key()")
    q.kfree_rcu_mightsleep(thing, SIZE(64), result=None)
    q.hashtable_destroy(table, None, None, result=None)
    q.rcu_barrier(result=None)


def lists_and_ids(q, size):
    node = size["list_head"]
    head, nodes = q.object(node), [q.object(8 + node) for _ in range(3)]
    q.INIT_LIST_HEAD(head, result=None)
    for thing in nodes:
        q.list_add_tail_rcu(thing + 8, head, result=None)
    found, thing = [], q.list_first_or_null_rcu(head, SIZE(8))
    while thing:
        found.append(thing)
        thing = q.list_next_or_null_rcu(head, thing + 8, SIZE(8))
    check(found == nodes, "a walk along a list")
    ids, xa = q.object(size["ida"]), q.object(size["xarray"])
    q.ida_init(ids, result=None)
    check([q.ida_alloc(ids, result=INT) for _ in range(3)] == [0, 1, 2], "ida_alloc()")
    q.ida_destroy(ids, result=None)
    q.xa_init(xa, result=None)
    check(q.xa_insert(xa, LONG(9), head, result=INT) == 0 and q.xa_load(xa, LONG(9)) == head, "xa_load()")
    check(q.xa_count(xa, result=SIZE) == 1, "xa_count()")
    q.xa_destroy(xa, result=None)


def percpu(q, size):
    sem = q.object(size["percpu_rw_semaphore"])
    check(q.percpu_init_rwsem(c.c_uint32(size["layout"]), sem, result=INT) == 0, "percpu_init_rwsem()")
    q.percpu_down_read(sem, result=None)
    check(not q.percpu_down_write_trylock(sem, result=BOOL), "a writer beside a reader")
    q.percpu_up_read(sem, result=None)
    q.percpu_down_write(sem, result=None)
    q.percpu_up_write(sem, result=None)
    q.percpu_free_rwsem(sem, result=None)
    ref, released = q.object(size["percpu_ref"]), []
    release = CALLBACK(released.append)
    check(q.percpu_ref_init(c.c_uint32(size["layout"]), ref, release, c.c_uint(0), result=INT) == 0, "percpu_ref_init()")
    q.percpu_ref_get(ref, result=None)
    q.percpu_ref_kill(ref, result=None)
    q.percpu_ref_put(ref, result=None)
    check(released == [ref] and q.percpu_ref_is_zero(ref, result=BOOL), "the last reference")
    q.percpu_ref_exit(ref, result=None)


def caches(q, size):
    made = []
    construct = CALLBACK(made.append)
    cache = q.kmem_cache_create(c.c_uint32(size["layout"]), c.c_char_p(b"python"), SIZE(64), SIZE(0), c.c_uint(0), construct)
    check(cache and q.kmem_cache_size(cache, result=SIZE) == 64, "kmem_cache_create()")
    thing = q.kmem_cache_alloc(cache)
    check(thing in made, "a constructor in Python has run for the object")
    q.kmem_cache_free(cache, thing, result=None)
    check(q.kmem_cache_alloc(cache) == thing, "an object that was freed is the next")
    q.kfree(thing, result=None)
    row = (P * 20)()
    check(q.kmem_cache_alloc_bulk(cache, SIZE(20), where(row), result=SIZE) == 20 and len(set(row)) == 20, "kmem_cache_alloc_bulk()")
    q.kmem_cache_free_bulk(cache, SIZE(19), where(row), result=None)
    q.kfree_rcu(row[19], SIZE(0), SIZE(64), result=None)
    q.rcu_barrier(result=None)
    check(q.kmem_cache_shrink(cache, result=INT) == 0, "kmem_cache_shrink()")
    stats = (U64 * 7)()
    q.kmem_cache_get_stats(cache, where(stats), SIZE(c.sizeof(stats)), result=None)
    check(list(stats)[:5] == [0] * 5, "a cache that was shrunk has nothing")
    q.kmem_cache_destroy(cache, result=None)
    plain = q.kmem_cache_create(c.c_uint32(size["layout"]), c.c_char_p(b"zeroed"), SIZE(64), SIZE(0), c.c_uint(2), None)  # type-safe
    check(c.string_at(q.kmem_cache_zalloc(plain), 64) == bytes(64), "kmem_cache_zalloc()")


def child(q, size):
    """After os.fork() the library works in the child."""
    pid = os.fork()
    if pid == 0:
        rcu(q)
        hazptr(q)
        caches(q, size)
        os._exit(0)
    check(os.waitpid(pid, 0)[1] == 0, "a child of os.fork()")


def main():
    q = Library(sys.argv[1])
    size = {name: int(value) for name, value in (pair.split("=") for pair in sys.argv[2:])}
    rcu(q)
    refused(q)
    srcu(q, size)
    hazptr(q)
    tables(q, size)
    lists_and_ids(q, size)
    percpu(q, size)
    caches(q, size)
    child(q, size)
    check(q.shutdown(U64(10 ** 10), result=INT) == 0, "quiesce_shutdown()")
    print("all calls done")


if __name__ == "__main__":
    main()
