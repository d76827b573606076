/* SPDX-License-Identifier: MIT */
/* qsbr.c - liburcu's quiescent-state flavour: readers announce when they hold nothing.
 *
 * A section of a back-to-back reader costs nothing here; one quiescent state is announced for every 512 of them, as
 * the main loop of a program would.
 */
#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-qsbr.h>

#include "loop.h"
#include "registry.h"

#define SECTIONS_PER_QUIESCENT_STATE 512

static __thread uint32_t sections __attribute__((tls_model("initial-exec")));

static inline __attribute__((always_inline)) uint64_t liburcu_qsbr_section(struct op_target *t)
{
	uint64_t value;

	urcu_qsbr_read_lock();
	value = rcu_dereference(t->ptr)->field;
	urcu_qsbr_read_unlock();
	if (++sections % SECTIONS_PER_QUIESCENT_STATE == 0)
		urcu_qsbr_quiescent_state();
	return value;
}

OP_PADS(OP_LOOP, liburcu_qsbr)

OP_FUNCTION(lock, urcu_qsbr_read_lock())
OP_FUNCTION(unlock, urcu_qsbr_read_unlock(); urcu_qsbr_quiescent_state())
OP_FUNCTION(thread_enter, urcu_qsbr_register_thread())
OP_FUNCTION(thread_exit, urcu_qsbr_unregister_thread())
OP_FUNCTION(sleep_begin, urcu_qsbr_thread_offline())
OP_FUNCTION(sleep_end, urcu_qsbr_thread_online())
OP_FUNCTION(wait_plain, urcu_qsbr_synchronize_rcu())

static const struct op_read liburcu_qsbr_read = {
	.loop = { liburcu_qsbr_loop0, liburcu_qsbr_loop1, liburcu_qsbr_loop2, liburcu_qsbr_loop3 }, .lock = lock,
	.unlock = unlock,
};

TYPE(liburcu_qsbr, .rank = 1020, .groups = PEER_RCU | RUN_READ | RUN_WAIT | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.what = "liburcu's quiescent-state flavour, one quiescent state per 512 sections",
	.reason = "its sections execute nothing, because each thread has to report, here once in 512 sections, that it holds nothing",
	.read = &liburcu_qsbr_read, .wait = &(const struct op_wait){ .wait = wait_plain }, .thread_enter = thread_enter,
	.thread_exit = thread_exit, .sleep_begin = sleep_begin, .sleep_end = sleep_end);
