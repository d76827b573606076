/* SPDX-License-Identifier: MIT */
/* atomic-sim.h - the simulator's back end of quiesce/atomic.h.
 *
 * Every operation is a scheduling point followed by one access of the memory
 * model (memory.c).  The order of a labelled operation is decided at run time,
 * so that one binary holds every barrier mutant of src/platform/mutants.h.
 */
#ifndef QUIESCE_ATOMIC_SIM_H
#define QUIESCE_ATOMIC_SIM_H

#include "platform/mutants.h"

#include <stdbool.h>

enum sim_order { SIM_RELAXED, SIM_ACQUIRE, SIM_RELEASE, SIM_FULL };

/* A trace names the location of an operation in the source. */
struct sim_site {
	const char *func;
	const char *label;
	int line;
};

uint64_t sim__load(const void *p, unsigned size, enum sim_order order, const struct sim_site *site);
void sim__store(void *p, unsigned size, uint64_t value, enum sim_order order, const struct sim_site *site);
uint64_t sim__xchg(void *p, unsigned size, uint64_t value, enum sim_order order, const struct sim_site *site);
uint64_t sim__fetch_add(void *p, unsigned size, uint64_t add, enum sim_order order, const struct sim_site *site);
bool sim__cmpxchg(void *p, unsigned size, void *expected, uint64_t value, enum sim_order order,
		  const struct sim_site *site);
void sim__fence_full(bool weakened, const struct sim_site *site);
void sim__fence_light(bool weakened, const struct sim_site *site);

#define SIM_SITE(text) static const struct sim_site sim_site_ = { __func__, text, __LINE__ }
#define SIM_ORDER(label, kind, order) (quiesce_weakened(label, kind) ? SIM_RELAXED : (order))

#define SIM_LOAD(text, p, order)                                                                         \
	({                                                                                               \
		SIM_SITE(text);                                                                          \
		(__typeof__(*(p)))sim__load((p), sizeof *(p), (order), &sim_site_);                      \
	})
#define SIM_STORE(text, p, v, order)                                                                     \
	({                                                                                               \
		SIM_SITE(text);                                                                          \
		__typeof__(*(p)) sim_value_ = (v);                                                       \
		sim__store((p), sizeof *(p), (uint64_t)sim_value_, (order), &sim_site_);                 \
	})
#define SIM_RMW(text, op, p, v, order)                                                                   \
	({                                                                                               \
		SIM_SITE(text);                                                                          \
		__typeof__(*(p)) sim_value_ = (v);                                                       \
		(__typeof__(*(p)))sim__##op((p), sizeof *(p), (uint64_t)sim_value_, (order), &sim_site_); \
	})

#define quiesce_load_relaxed(p) SIM_LOAD("", p, SIM_RELAXED)
#define quiesce_load_consume(label, p) SIM_LOAD(#label, p, SIM_ORDER(label, ACQUIRE, SIM_ACQUIRE))
#define quiesce_load_acquire(label, p) SIM_LOAD(#label, p, SIM_ORDER(label, ACQUIRE, SIM_ACQUIRE))
#define quiesce_store_relaxed(p, v) SIM_STORE("", p, v, SIM_RELAXED)
#define quiesce_store_release(label, p, v) SIM_STORE(#label, p, v, SIM_ORDER(label, RELEASE, SIM_RELEASE))
#define quiesce_xchg(label, p, v) SIM_RMW(#label, xchg, p, v, SIM_ORDER(label, RMW, SIM_FULL))
#define quiesce_fetch_add(label, p, v) SIM_RMW(#label, fetch_add, p, v, SIM_ORDER(label, RMW, SIM_FULL))
#define quiesce_fetch_add_relaxed(p, v) SIM_RMW("", fetch_add, p, v, SIM_RELAXED)
#define quiesce_cmpxchg(label, p, expected, n)                                                           \
	({                                                                                               \
		SIM_SITE(#label);                                                                        \
		__typeof__(*(p)) sim_value_ = (n);                                                       \
		sim__cmpxchg((p), sizeof *(p), (expected), (uint64_t)sim_value_,                         \
			     SIM_ORDER(label, RMW, SIM_FULL), &sim_site_);                               \
	})
#define quiesce_cmpxchg_relaxed(p, expected, n)                                                          \
	({                                                                                               \
		SIM_SITE("");                                                                            \
		__typeof__(*(p)) sim_value_ = (n);                                                       \
		sim__cmpxchg((p), sizeof *(p), (expected), (uint64_t)sim_value_, SIM_RELAXED, &sim_site_); \
	})
#define quiesce_fence_light(label)                                                                       \
	({                                                                                               \
		SIM_SITE(#label);                                                                        \
		sim__fence_light(quiesce_weakened(label, LIGHT), &sim_site_);                            \
	})
#define quiesce_fence_full(label)                                                                        \
	({                                                                                               \
		SIM_SITE(#label);                                                                        \
		sim__fence_full(quiesce_weakened(label, FULL), &sim_site_);                              \
	})

#endif
