/* SPDX-License-Identifier: MIT */
/* urcu/static/urcu-qsbr.h - the inlines are in urcu/urcu-qsbr.h, for every program. */
#include <urcu/urcu-qsbr.h>
