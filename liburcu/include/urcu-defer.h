/* SPDX-License-Identifier: MIT */
/* urcu-defer.h - the same as urcu/defer.h, under its old name. */
#include <urcu/defer.h>
