/* SPDX-License-Identifier: MIT */
/* qsbr.c - liburcu-qsbr.so.8. */
#include "words.h"

#include <errno.h>

QUIESCE_URCU_CALLS(qsbr)

#define F(name) urcu_qsbr_##name
#define FLAVOR_NAME "qsbr"

QUIESCE_DATA struct urcu_gp urcu_qsbr_gp = { .ctr = 1 };
QUIESCE_DATA __thread struct urcu_reader urcu_qsbr_reader;

static struct quiesce_urcu_domain domain = {
	.call = "urcu_qsbr_synchronize_rcu",
	.kind = QUIESCE_URCU_QUIET,
	.gp = &urcu_qsbr_gp.ctr,
	.futex = &urcu_qsbr_gp.futex,
};

QUIESCE_DATA void urcu_qsbr_read_lock(void);
QUIESCE_DATA void urcu_qsbr_read_unlock(void);
QUIESCE_DATA int urcu_qsbr_read_ongoing(void);
QUIESCE_DATA void urcu_qsbr_quiescent_state(void);
QUIESCE_DATA void urcu_qsbr_thread_offline(void);
QUIESCE_DATA void urcu_qsbr_thread_online(void);
QUIESCE_DATA void urcu_qsbr_exit(void);

void urcu_qsbr_read_lock(void) {}
void urcu_qsbr_read_unlock(void) {}
void urcu_qsbr_exit(void) {}
int urcu_qsbr_read_ongoing(void) { return urcu_qsbr_reader.ctr != 0; }

static void set_word(struct urcu_reader *self, uint64_t word)
{
	quiesce__urcu_fence(false);
	/* UW2: release, pairs with UW2 in blocks() */
	quiesce_store_release(UW2, &self->ctr, word);
	quiesce__urcu_fence_before_wake(false);
	if (quiesce_likely(!quiesce_load_relaxed(&self->at.qsbr.waiting))) /* Relaxed: UW4. */
		return;
	quiesce_store_relaxed(&self->at.qsbr.waiting, 0); /* Relaxed: the fence follows. */
	quiesce__urcu_fence_before_wake(false);
	urcu_wake(&urcu_qsbr_gp.futex);
}

void urcu_qsbr_quiescent_state(void)
{
	uint64_t gp = quiesce_load_relaxed(&urcu_qsbr_gp.ctr); /* Relaxed: the fence follows. */

	if (gp != quiesce_load_relaxed(&urcu_qsbr_reader.ctr)) /* Relaxed: the thread's own word. */
		set_word(&urcu_qsbr_reader, gp);
}

void urcu_qsbr_thread_offline(void) { set_word(&urcu_qsbr_reader, 0); }

void urcu_qsbr_thread_online(void)
{
	/* Relaxed: an old number only makes an updater wait needlessly. */
	quiesce_store_relaxed(&urcu_qsbr_reader.ctr, quiesce_load_relaxed(&urcu_qsbr_gp.ctr));
	quiesce__urcu_fence(false);
}

static bool added;

__attribute__((constructor)) static void begin(void)
{
	if (added)
		return;
	added = true;
	(void)quiesce_urcu_domain_add(&domain);
}

void urcu_qsbr_register_thread(void)
{
	struct urcu_reader *self = &urcu_qsbr_reader;

	begin(); /* constructors of the program may come before this library's */
	if (!self->at.qsbr.registered) {
		self->at.qsbr.tid = pthread_self();
		self->at.qsbr.registered = 1;
		self->record.word = &self->ctr;
		self->record.waiting = &self->at.qsbr.waiting;
		quiesce_urcu_record_add(&domain, &self->record);
	}
	urcu_qsbr_thread_online();
}

void urcu_qsbr_unregister_thread(void)
{
	struct urcu_reader *self = &urcu_qsbr_reader;

	urcu_qsbr_thread_offline();
	if (!self->at.qsbr.registered)
		return;
	self->at.qsbr.registered = 0;
	quiesce_urcu_record_remove(&domain, &self->record);
}

void urcu_qsbr_synchronize_rcu(void)
{
	bool online = urcu_qsbr_read_ongoing();

	if (online)
		urcu_qsbr_thread_offline();
	quiesce_urcu_wait(&domain);
	if (online)
		urcu_qsbr_thread_online();
}

static void nothing(void) {}

#define F_BEFORE_UPDATE nothing
#define F_QUIESCENT_STATE urcu_qsbr_quiescent_state
#define F_THREAD_OFFLINE urcu_qsbr_thread_offline
#define F_THREAD_ONLINE urcu_qsbr_thread_online
#include "domain.h"
