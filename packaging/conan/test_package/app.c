/* SPDX-License-Identifier: MIT */
/* app.c - a section of RCU and a wait, on the packaged headers and library. */
#include <quiesce/rcu.h>
#include <quiesce/control.h>
#include <stdio.h>

int main(void)
{
	rcu_read_lock();
	rcu_read_unlock();
	synchronize_rcu();
	return printf("quiesce %s\n", quiesce_version()) < 0;
}
