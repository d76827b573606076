/* SPDX-License-Identifier: MIT */
/* urcu/static/urcu.h - the inlines are in urcu/urcu.h, for every program. */
#include <urcu/urcu.h>
