/* SPDX-License-Identifier: MIT */
/* bp.c - the flavour bp. */
#include <urcu/urcu-bp.h>

#include "flavor.h"
#include <quiesce/detail/rcu_calls.h>

#define F(name) urcu_bp_##name
#define FLAVOR (&flavor_bp)
#define FLAVOR_STATE flavor_bp
#define FLAVOR_INDEX FLAVOR_BP
#include "rcu_flavor.h"
