/* SPDX-License-Identifier: MIT */
/* mb.c - the flavour mb. */
#include <urcu/urcu-mb.h>

#include "flavor.h"
#include "wake.h"

#include <errno.h>

#define F(name) urcu_mb_##name
#define FLAVOR (&flavor_mb)

QUIESCE_DATA struct quiesce_urcu_mb_gp quiesce_urcu_mb_gp = { .word = 1 };
QUIESCE_DATA __thread struct quiesce_urcu_mb_reader quiesce_urcu_mb_reader;

static struct quiesce_urcu_domain domain = {
	.call = "urcu_mb_synchronize_rcu",
	.kind = QUIESCE_URCU_FENCED,
	.gp = &quiesce_urcu_mb_gp.word,
	.futex = &quiesce_urcu_mb_gp.futex,
};

void quiesce_urcu_mb_wake(void) { urcu_wake(&quiesce_urcu_mb_gp.futex); }

__attribute__((constructor)) static void begin(void)
{
	static bool added;

	if (added)
		return;
	added = true; /* by a constructor, before there are threads */
	(void)quiesce_urcu_domain_add(&domain);
}

/* Programs' constructors may come first. */
void F(init)(void) { begin(); }

void F(register_thread)(void)
{
	struct quiesce_urcu_mb_reader *self = &quiesce_urcu_mb_reader;

	if (self->registered)
		return;
	begin();
	self->registered = true;
	self->record.word = &self->word;
	quiesce_urcu_record_add(&domain, &self->record);
}

void F(unregister_thread)(void)
{
	struct quiesce_urcu_mb_reader *self = &quiesce_urcu_mb_reader;

	if (!self->registered)
		return;
	self->registered = false;
	quiesce_urcu_record_remove(&domain, &self->record);
}

void F(synchronize_rcu)(void)
{
	if (F(read_ongoing)())
		urcu_die("urcu_mb_synchronize_rcu", EDEADLK);
	quiesce_urcu_wait(&domain);
}

struct urcu_gp_poll_state F(start_poll_synchronize_rcu)(void)
{
	struct urcu_gp_poll_state state = { quiesce_urcu_cookie(&domain) };

	(void)quiesce_urcu_poll(&domain, state.grace_period_id);
	return state;
}

bool F(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state) { return quiesce_urcu_poll(&domain, state.grace_period_id); }

#include "exports.h"

struct flavor flavor_mb = {
	.index = FLAVOR_MB,
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.register_thread = F(register_thread),
	.unregister_thread = F(unregister_thread),
	.offline = thread_offline,
	.online = thread_online,
	.ongoing = read_ongoing,
	.synchronize = F(synchronize_rcu),
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
