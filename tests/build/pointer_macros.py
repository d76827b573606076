#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The use of pointers by macros of quiesce's headers: tables for pointers.py.  Prints TAP."""
import argparse
import pathlib
import sys

import pointers
from pointers import BOTH, CXX

HEADERS = ("counted_ptr", "ds/lfqueue", "ds/lfstack", "ds/rculist", "ds/rculist_nulls", "ds/wfcqueue", "ds/wfstack", "hazptr", "shazptr", "srcu")
NODES = {  # macro: the field of every object, its type
    "list_entry": ("link", "list_head"), "hlist_entry": ("chain", "hlist_node"), "hlist_entry_safe": ("chain", "hlist_node"),
    "hlist_nulls_entry": ("nulls", "hlist_nulls_node"), "lfq_entry": ("waiting", "lfq_node"), "wfcq_entry": ("queued", "wfcq_node"),
    "lfs_entry": ("lock_free", "lfs_node"), "wfs_entry": ("wait_free", "wfs_node")}
HEADS = [("hazptr", "hazptr_head"), ("rcu", "rcu_head"), ("counted", "counted")]

MORE = """
DEFINE_STATIC_SRCU(domain);
static hazptr_t *slot;
static struct list_head list;
#ifdef __cplusplus
static struct derived_list : pad, list_head {} derived;
#endif
static void *guarded(struct shazptr_guard guard)
{
	void *ptr = guard.ptr;

	shazptr_clear(guard);
	return ptr;
}
static void stays(struct counted *counted) { (void)counted; }
static void fill(struct list_head *head)
{
	struct thing *all_things[] = { &one, &two, &three };
	size_t i;

	INIT_LIST_HEAD(head);
	for (i = 0; i < 3; i++)
		list_add_tail(&all_things[i]->link, head);
}
static void setup(void)
{
	struct thing *all_things[] = { &one, &two, &three, &four };
	size_t i;

	slot = hazptr_alloc(NULL);
	for (i = 0; i < 4; i++)
		counted_init(&all_things[i]->counted, stays);
#ifdef __cplusplus
	counted_init(&part->counted, stays);
#endif
}
"""

EXPECTED = "{ __typeof__(1 ? {p} : NULL) e = NULL; (void)NAME(&{p}, &e, {v}); }"
OLD = "{ __typeof__(1 ? {p} : NULL) e = {v}; (void)NAME(&{p}, &e, NULL); }"
LOOP = "struct thing *e; NAME(e, {h}, link) nr_values++"
FROM = "struct thing *e = &one; nr_values = START; NAME(e, {h}, link) nr_values++"
FOUND = "nr_values = ({}) ? 3 : 0"


def named(use, name, **more):
    for what, text in {"NAME": name, **more}.items():
        use = use.replace(what, text)
    return use


TABLES = pointers.Tables(
    includes="".join(f"#include <quiesce/{h}.h>\n" for h in HEADERS),
    members=" ".join(f"struct {kind} {field};" for field, kind in [*HEADS, *{n: None for n in NODES.values()}]),
    more=MORE,
    stores={
        "rcu_assign_pointer": "rcu_assign_pointer({p}, {v})",
        "RCU_INIT_POINTER": "RCU_INIT_POINTER({p}, {v})",
        "rcu_xchg_pointer": "(void)rcu_xchg_pointer(&{p}, {v})",
        "rcu_replace_pointer": "(void)rcu_replace_pointer({p}, {v}, true)",
        "rcu_cmpxchg_pointer": "(void)rcu_cmpxchg_pointer(&{p}, NULL, {v})",
        "rcu_try_cmpxchg_pointer": named(EXPECTED, "rcu_try_cmpxchg_pointer"),
        "counted_exchange": "(void)counted_exchange(&{p}, {v})",
        "counted_cmpxchg": named(EXPECTED, "counted_cmpxchg"),
    },
    field_stores={"counted_publish": "counted_publish(&{p}, {v}, counted)"},
    olds={
        "rcu_cmpxchg_pointer": "(void)rcu_cmpxchg_pointer(&{p}, {v}, NULL)",
        "rcu_try_cmpxchg_pointer": named(OLD, "rcu_try_cmpxchg_pointer"),
        "counted_cmpxchg": named(OLD, "counted_cmpxchg"),
    },
    loads={
        "hazptr_protect": "hazptr_protect(slot, {w})",
        "hazptr_protect of a field": "hazptr_protect(slot, {w}, hazptr)",
        "hazptr_tryprotect": "hazptr_tryprotect(slot, {w})",
        "hazptr_tryprotect of a field": "hazptr_tryprotect(slot, {w}, hazptr)",
        "hazptr_protect_masked": "hazptr_protect_masked(slot, {w}, 1)",
        "hazptr_protect_masked of a field": "hazptr_protect_masked(slot, {w}, 1, hazptr)",
        "counted_protect": "counted_protect(slot, {w}, counted)",
        "counted_tryprotect": "counted_tryprotect(slot, {w}, counted)",
        "counted_load": "counted_load({w}, counted)",
    },
    guards={f"shazptr_{how}": f"guarded(shazptr_{how}({{w}}))" for how in ("protect", "tryprotect", "protect_detached")},
    lvalues={
        "rcu_dereference": "rcu_dereference({p})",
        "rcu_dereference_raw": "rcu_dereference_raw({p})",
        "rcu_dereference_check": "rcu_dereference_check({p}, true)",
        "rcu_dereference_protected": "rcu_dereference_protected({p}, true)",
        "rcu_access_pointer": "rcu_access_pointer({p})",
        "srcu_dereference": "srcu_dereference({p}, &domain)",
        "srcu_dereference_check": "srcu_dereference_check({p}, &domain, true)",
    },
    walks={
        **{name: named(LOOP, name) for name in ("list_for_each_entry_rcu", "list_for_each_entry", "list_for_each_entry_reverse")},
        "list_for_each_entry_safe": "struct thing *e, *n; list_for_each_entry_safe(e, n, {h}, link) nr_values++",
        "list_for_each_rcu": "struct list_head *e; list_for_each_rcu(e, {h}) nr_values++",
        "list_for_each_entry_continue_rcu": named(FROM, "list_for_each_entry_continue_rcu", START="1"),
        "list_for_each_entry_from_rcu": named(FROM, "list_for_each_entry_from_rcu", START="0"),
        "list_first_entry": FOUND.replace("{}", "list_first_entry({h}, struct thing, link) == &one"),
        "list_last_entry": FOUND.replace("{}", "list_last_entry({h}, struct thing, link) == &three"),
        "list_first_entry_or_null": "INIT_LIST_HEAD({h}); " + FOUND.replace("{}", "!list_first_entry_or_null({h}, struct thing, link)"),
        "list_first_or_null_rcu": "INIT_LIST_HEAD({h}); " + FOUND.replace("{}", "!list_first_or_null_rcu({h}, struct thing, link)"),
        "list_next_or_null_rcu": FOUND.replace("{}", "!list_next_or_null_rcu({h}, &three.link, struct thing, link)"),
    },
    nodes=NODES,
    good=[
        (f"{name}: once", BOTH, f"struct thing *p = made(); nr_places = 0; {use}; expect(nr_places == 1, WHAT);") for name, use in (
            ("kfree_rcu", "kfree_rcu(*place(&p), rcu)"), ("kfree_hazptr", "kfree_hazptr(*place(&p), hazptr)"),
            ("kfree_rcu_mightsleep", "kfree_rcu_mightsleep(*place(&p))"))
    ] + [
        (f"{name}: none", BOTH, f"struct thing *volatile p = NULL; {use};") for name, use in (
            ("kfree_rcu", "kfree_rcu(p, rcu)"), ("kfree_hazptr", "kfree_hazptr(p, hazptr)"), ("kfree_rcu_mightsleep", "kfree_rcu_mightsleep(p)"))
    ] + [
        ("list_entry_rcu", BOTH, "fill(&list); expect(list_entry_rcu(list.next, struct thing, link) == &one, WHAT);"),
        ("neighbours", BOTH, "fill(&list); expect(list_next_entry(&one, link) == &two && list_prev_entry(&two, link) == &one, WHAT);"),
    ],
    bad=[
        (f"{name}: a constant", BOTH, f"{use};") for name, use in (
            ("kfree_rcu", "kfree_rcu(fixed, rcu)"), ("kfree_hazptr", "kfree_hazptr(fixed, hazptr)"),
            ("kfree_rcu_mightsleep", "kfree_rcu_mightsleep(fixed)"))
    ] + [
        (f"{use}: a field of another type", BOTH, f"struct thing *p = NULL; {use};") for use in (
            "kfree_rcu(p, hazptr)", "kfree_hazptr(p, rcu)", "counted_load(&p, rcu)", "counted_publish(&p, &one, rcu)")
    ] + [
        (f"{use}: a field of a derived class", CXX, f"struct odd : pad, {kind} {{}}; struct has {{ odd f; }}; has *p = nullptr; {use};")
        for use, kind in (("kfree_rcu(p, f)", "rcu_head"), ("kfree_hazptr(p, f)", "hazptr_head"), ("(void)counted_load(&p, f)", "counted"),
                          ("counted_publish(&p, nullptr, f)", "counted"))
    ] + [
        (f"{name}: expects another type", BOTH, f"struct thing *p = NULL; struct stranger *e = NULL; (void){name}(&p, &e, &one);")
        for name in ("rcu_try_cmpxchg_pointer", "counted_cmpxchg")
    ] + [
        ("rcu_cmpxchg_pointer: another type is there", BOTH, "struct thing *p = NULL; (void)rcu_cmpxchg_pointer(&p, &other, &one);"),
    ],
    others={
        "they declare or initialise": "DEFINE_.* .*_INIT HASHTABLE_TYPE.* LIST_HEAD HLIST_HEAD",
        "they take numbers, or a type": "NULLS_MARKER XA_LIMIT KMEM_CACHE",
        "their pointers go to functions as they are": "init_srcu_struct hashmap_for_each hashtable_for_each.* idr_for_each_entry.* xa_for_each.* "
                                                      "lfs_for_each.* wfs_for_each.* wfcq_for_each.*",
        "they go from field to field of what is given": "hlist_for_each_entry.* hlist_nulls_for_each_entry.*",
    })


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("--static", required=True)
    opt = args.parse_args()
    return pointers.check(TABLES, [opt.include.resolve()], opt.static)


if __name__ == "__main__":
    sys.exit(main())
