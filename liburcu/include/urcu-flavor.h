/* SPDX-License-Identifier: MIT */
/* urcu-flavor.h - the same as urcu/flavor.h, under its old name. */
#include <urcu/flavor.h>
