/* SPDX-License-Identifier: MIT */
/* urcu-call-rcu.h - the same as urcu/call-rcu.h, under its old name. */
#include <urcu/call-rcu.h>
