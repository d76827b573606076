/* SPDX-License-Identifier: MIT */
/* nesting.h - a flavour whose readers nest and are registered, memb and mb; with F(name), FLAVOR_NAME, KIND and LIGHT.  No guard. */

QUIESCE_DATA struct urcu_gp F(gp) = { .ctr = 1 };
QUIESCE_DATA __thread struct urcu_reader F(reader);

static struct quiesce_urcu_domain domain = {
	.call = "urcu_" FLAVOR_NAME "_synchronize_rcu",
	.kind = KIND,
	.gp = &F(gp).ctr,
	.futex = &F(gp).futex,
};

QUIESCE_DATA void F(read_lock)(void);
QUIESCE_DATA void F(read_unlock)(void);
QUIESCE_DATA int F(read_ongoing)(void);

void F(read_lock)(void) { quiesce__urcu_lock(&F(reader).ctr, &F(gp).ctr, LIGHT); }

void F(read_unlock)(void)
{
	if (quiesce__urcu_unlock(&F(reader).ctr, LIGHT))
		urcu_wake(&F(gp).futex);
}

int F(read_ongoing)(void) { return (F(reader).ctr & QUIESCE_URCU_NESTING) != 0; }

static void nothing(void) {}

void F(register_thread)(void)
{
	struct urcu_reader *self = &F(reader);

	if (self->at.nesting.registered)
		return;
	F(init)();
	self->at.nesting.tid = pthread_self();
	self->at.nesting.registered = 1;
	self->record.word = &self->ctr;
	quiesce_urcu_record_add(&domain, &self->record);
}

void F(unregister_thread)(void)
{
	struct urcu_reader *self = &F(reader);

	if (!self->at.nesting.registered)
		return;
	self->at.nesting.registered = 0;
	quiesce_urcu_record_remove(&domain, &self->record);
}

void F(synchronize_rcu)(void)
{
	if (F(read_ongoing)())
		urcu_die("urcu_" FLAVOR_NAME "_synchronize_rcu", EDEADLK);
	quiesce_urcu_wait(&domain);
}

#define F_BEFORE_UPDATE nothing
#define F_QUIESCENT_STATE nothing
#define F_THREAD_OFFLINE nothing
#define F_THREAD_ONLINE nothing
#include "domain.h"
