/* SPDX-License-Identifier: MIT */
/* urcu/static/urcu-mb.h - the inlines are in urcu/urcu-mb.h, for every program. */
#include <urcu/urcu-mb.h>
