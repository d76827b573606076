/* SPDX-License-Identifier: MIT */
/* memb.c - the flavour memb. */
#include <urcu/urcu-memb.h>

#include "flavor.h"
#include <quiesce/detail/rcu_calls.h>

#define F(name) urcu_memb_##name
#define FLAVOR (&flavor_memb)
#define FLAVOR_STATE flavor_memb
#define FLAVOR_INDEX FLAVOR_MEMB
#include "rcu_flavor.h"
