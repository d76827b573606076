/* SPDX-License-Identifier: MIT */
/* mb.c - the flavour mb. */
#include <urcu/urcu-mb.h>

#include "flavor.h"
#include "wake.h"

#include <errno.h>

#define F(name) urcu_mb_##name
#define FLAVOR (&flavor_mb)

QUIESCE_DATA struct quiesce_urcu_mb_gp quiesce_urcu_mb_gp = { .ctr = 1 };
QUIESCE_DATA __thread struct quiesce_urcu_mb_reader quiesce_urcu_mb_reader;

void quiesce_urcu_mb_wake(void) { urcu_wake(&quiesce_urcu_mb_gp.futex); }

struct quiesce_urcu_mb_reader *quiesce_urcu_mb_own_call(void) { return &quiesce_urcu_mb_reader; }

static void nothing(void) {}

#define FLAVOR_NAME "mb"
#define KIND QUIESCE_URCU_FENCED
#define GP quiesce_urcu_mb_gp
#define READER quiesce_urcu_mb_reader
#define REGISTERED registered
#define BEGUN(light) ((void)(light))
#define F_BEFORE_UPDATE nothing
#include "nesting.h"
#include "polls.h"
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
	.forker = PTHREAD_MUTEX_INITIALIZER,
};
