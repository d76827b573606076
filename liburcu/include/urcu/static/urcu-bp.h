/* SPDX-License-Identifier: MIT */
/* urcu/static/urcu-bp.h - the inlines are in urcu/urcu-bp.h, for every program. */
#include <urcu/urcu-bp.h>
