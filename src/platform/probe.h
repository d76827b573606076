/* SPDX-License-Identifier: MIT */
/* probe.h - static probes, by which a tracer watches a live process: provider "quiesce", docs/watching.md lists them.
 *
 * A probe is an instruction without effect, and a note in the object that describes where the probe and its arguments are.  Each has
 * a word that the kernel raises while a tracer listens.  So arguments are computed, and a clock is read, for a listener only; others pay
 * for the load of a word that is never written.  No inline call of a reader has a probe.  Calls that queue an object have none either:
 * they are exported functions, which a tracer can watch without one.
 *
 * Without sys/sdt.h at the build, and in the simulator, there are no probes.  Source: SystemTap's sys/sdt.h for the notes; Linux 4.20
 * for words that the kernel counts up for uprobes.
 */
#ifndef QUIESCE_PLATFORM_PROBE_H
#define QUIESCE_PLATFORM_PROBE_H

#include <quiesce/atomic.h>

#include <stdint.h>

#define QUIESCE_PROBES(X) \
	X(gp_begin) X(gp_end) X(reader_found) X(pass_begin) X(pass_end) X(callback_begin) X(callback_end) \
	X(throttle_begin) X(throttle_end) X(report) X(object_wait_begin) X(object_wait_end) X(queue_wait_begin) X(queue_wait_end) \
	X(drain_begin) X(drain_end) X(srcu_wait_begin) X(srcu_wait_end) X(ref_switch) X(resize_begin) X(resize_end) X(slab_refill)

#if defined(QUIESCE_HAVE_SDT) && !defined(QUIESCE_SIM)
#define SDT_USE_VARIADIC 1
#define _SDT_HAS_SEMAPHORES 1
#define STAP_SDT_ARG_CONSTRAINT nr /* no operands in memory: some tracers cannot find those that a symbol names */
#include <sys/sdt.h>

/* Each word has a line of its own, which is never written while no tracer listens. */
#define QUIESCE_PROBE_WORDS (QUIESCE_CACHELINE / sizeof(unsigned short))
#define QUIESCE__DECLARE_PROBE(name) \
	extern unsigned short quiesce_##name##_semaphore[QUIESCE_PROBE_WORDS] __attribute__((visibility("hidden")));
QUIESCE_PROBES(QUIESCE__DECLARE_PROBE)

/* True while a tracer listens to the probe.  Relaxed: the kernel changes the word, and the first events may be missed. */
#define quiesce_probe_listens(name) quiesce_unlikely(quiesce_load_relaxed(&quiesce_##name##_semaphore[0]))
#define quiesce_probe(name, ...) \
	do { \
		if (quiesce_probe_listens(name)) \
			STAP_PROBEV(quiesce, name, __VA_ARGS__); \
	} while (0)
#else
/* Arguments are compiled, and not evaluated. */
static inline void quiesce__no_probe(int unused, ...)
{
	(void)unused;
}

#define quiesce_probe_listens(name) 0
#define quiesce_probe(name, ...) \
	do { \
		if (0) \
			quiesce__no_probe(0, __VA_ARGS__); \
	} while (0)
#endif

/* The time if a tracer listens to the probe, else 0; and the nanoseconds since then, or 0. */
#define quiesce_probe_clock(name) (quiesce_probe_listens(name) ? platform_now_ns() : (uint64_t)0)
#define quiesce_probe_since(clock) ((clock) ? platform_now_ns() - (clock) : (uint64_t)0)

#endif
