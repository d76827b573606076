/* SPDX-License-Identifier: MIT */
/* urcu/static/urcu-memb.h - the inlines are in urcu/urcu-memb.h, for every program. */
#include <urcu/urcu-memb.h>
