#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The use of pointers by macros of the face: tables for tests/build/pointers.py.  Prints TAP."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "build"))
import pointers  # noqa: E402
from pointers import BOTH, C, CXX  # noqa: E402

MORE = """
static struct cds_list_head list;
#ifdef __cplusplus
static struct derived_list : pad, cds_list_head {} derived;
#endif
static void fill(struct cds_list_head *head)
{
	struct thing *all_things[] = { &one, &two, &three };
	size_t i;

	CDS_INIT_LIST_HEAD(head);
	for (i = 0; i < 3; i++)
		cds_list_add_tail(&all_things[i]->node, head);
}
static void setup(void) {}
"""

TYPED = {
    "rcu_assign_pointer": "rcu_assign_pointer({p}, {v})",
    "rcu_set_pointer": "rcu_set_pointer(&{p}, {v})",
    "rcu_xchg_pointer": "(void)rcu_xchg_pointer(&{p}, {v})",
    "rcu_cmpxchg_pointer": "(void)rcu_cmpxchg_pointer(&{p}, NULL, {v})",
    "CMM_STORE_SHARED": "(void)CMM_STORE_SHARED({p}, {v})",
    "_CMM_STORE_SHARED": "(void)_CMM_STORE_SHARED({p}, {v})",
    "uatomic_set": "uatomic_set(&{p}, {v})",
    "uatomic_store": "uatomic_store(&{p}, {v}, CMM_RELEASE)",
}
# These macros accept numbers in place of pointers, as liburcu's do.
LOOSE = {
    "uatomic_xchg": "(void)uatomic_xchg(&{p}, {v})",
    "uatomic_xchg with an order": "(void)uatomic_xchg(&{p}, {v}, CMM_RELAXED)",
    "uatomic_cmpxchg": "(void)uatomic_cmpxchg(&{p}, NULL, {v})",
}
LOOP = "struct thing *e; NAME(e, {h}, node) nr_values++"
LOOP_SAFE = "struct thing *e, *n; NAME(e, n, {h}, node) nr_values++"
NODES = "struct cds_list_head *e; NAME(e, {h}) nr_values++"
NODES_SAFE = "struct cds_list_head *e, *n; NAME(e, n, {h}) nr_values++"

TABLES = pointers.Tables(
    includes="".join(f"#include <urcu/{h}.h>\n" for h in ("pointer", "rcuhlist", "rculfhash", "rculist", "uatomic")),
    members="struct cds_list_head node; struct cds_hlist_node chain; struct cds_lfht_node found;",
    more=MORE,
    stores={**TYPED, **LOOSE},
    olds={
        "rcu_cmpxchg_pointer": "(void)rcu_cmpxchg_pointer(&{p}, {v}, NULL)",
        "uatomic_cmpxchg": "(void)uatomic_cmpxchg(&{p}, {v}, NULL)",
    },
    loose=tuple(LOOSE),
    lvalues={
        "rcu_dereference": "rcu_dereference({p})",
        "CMM_LOAD_SHARED": "CMM_LOAD_SHARED({p})",
        "_CMM_LOAD_SHARED": "_CMM_LOAD_SHARED({p})",
        "CMM_ACCESS_ONCE": "CMM_ACCESS_ONCE({p})",
        "uatomic_read": "uatomic_read(&{p})",
        "uatomic_load": "uatomic_load(&{p}, CMM_CONSUME)",
    },
    walks={
        **{name: LOOP.replace("NAME", name) for name in ("cds_list_for_each_entry", "cds_list_for_each_entry_rcu",
                                                         "cds_list_for_each_entry_reverse")},
        **{name: NODES.replace("NAME", name) for name in ("cds_list_for_each", "cds_list_for_each_rcu", "cds_list_for_each_prev")},
        **{name: NODES_SAFE.replace("NAME", name) for name in ("cds_list_for_each_safe", "cds_list_for_each_prev_safe")},
        "cds_list_for_each_entry_safe": LOOP_SAFE.replace("NAME", "cds_list_for_each_entry_safe"),
        "cds_list_for_each_entry_safe_from":
            "struct thing *e = &one, *n; cds_list_for_each_entry_safe_from(e, n, {h}, node) nr_values++",
        "cds_list_first_entry": "nr_values = cds_list_first_entry({h}, struct thing, node) == &one ? 3 : 0",
    },
    nodes={
        "caa_container_of": ("node", "cds_list_head"), "caa_container_of_check_null": ("chain", "cds_hlist_node"),
        "cds_list_entry": ("node", "cds_list_head"), "cds_hlist_entry": ("chain", "cds_hlist_node"),
        "cds_hlist_entry_safe": ("chain", "cds_hlist_node"), "cds_lfht_entry": ("found", "cds_lfht_node")},
    good=[
        ("uatomic: numbers for pointers", BOTH, "struct thing *p = NULL; uatomic_or(&p, 1UL); uatomic_add(&p, 8); "
         "expect(uatomic_xchg(&p, 0) == QUIESCE_AS_POINTER(struct thing *, QUIESCE_CAST(uintptr_t, 9)) && !p, WHAT);"),
        ("uatomic_xchg: -1", BOTH, "struct thing *p = NULL; (void)uatomic_xchg(&p, -1); "
         "expect(p == QUIESCE_AS_POINTER(struct thing *, UINTPTR_MAX), WHAT);"),
        ("uatomic_xchg: a pointer for a number", BOTH, "unsigned long n = 0; (void)uatomic_xchg(&n, &one); "
         "expect(n == QUIESCE_AS_POINTER(uintptr_t, &one), WHAT);"),
        ("cmm_ptr_eq: the same type", BOTH, "expect(cmm_ptr_eq(&one, any) && !cmm_ptr_eq(&one, &two) && !cmm_ptr_eq(&one, NULL), WHAT);"),
        ("cmm_ptr_eq: an object and its base", CXX, "const whole *w = &all; first *f = &all; "
         "expect(cmm_ptr_eq(w, part) && cmm_ptr_eq(part, &all) && cmm_ptr_eq(f, w) && !cmm_ptr_eq(part, nullptr), WHAT);"),
    ],
    bad=[(f"{use}: a member of another type", BOTH, f"struct thing *e; struct cds_hlist_node *at, *n; CDS_HLIST_HEAD(h); {use} nr_values++;")
         for use in ("cds_hlist_for_each_entry(e, at, &h, node)", "cds_hlist_for_each_entry_rcu(e, at, &h, node)",
                     "cds_hlist_for_each_entry_safe(e, at, n, &h, node)")],
    others={
        "they declare, or initialise": "CDS_.*HEAD.* CDS_INIT_.* CDS_DEPRECATED DE.*_URCU_TLS.* DEFINE_RCU_FLAVOR cmm_annotate_define",
        "other names of those in the tables": "_rcu_.* urcu_(bp|mb|memb|qsbr)_.* uatomic_(xchg|cmpxchg|load|store)_mo",
        "they take numbers": "uatomic_(add|sub|and|or|inc|dec).* CAA_.* __CAA_.* caa_(max|min|is_signed_type|cast_long_keep_sign) cmm_to_c11 rdtscll",
        "they take conditions": "caa_(un)?likely .*_assert.* _urcu_use_expression",
        "nothing but barriers": "cmm_(smp_)?(mb|rmb|wmb|mc|rmc|wmc|read_barrier_depends).* cmm_emit_legacy_smp_mb cmm_barrier caa_cpu_relax "
                                "cmm_annotate_.*",
        "the value stays what and where it is": "cmm_cast_volatile URCU_FORCE_CAST URCU_TLS _CMM_OPTIMIZER_HIDE_VAR",
        "their pointers go to functions as they are": "cds_lfht_for_each.* cds_lfs_for_each.* cds_wfs_for_each.* __cds_wfcq_for_each.*",
        "they go from field to field of what is given": "cds_hlist_for_each.*",
    },
    void_nodes=C,
    flags=("-Wno-shadow",))  # an operation inside of another one has variables of the same names


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, action="append", required=True, help="the face's first")
    args.add_argument("--static", required=True)
    opt = args.parse_args()
    return pointers.check(TABLES, [i.resolve() for i in opt.include], opt.static)


if __name__ == "__main__":
    sys.exit(main())
