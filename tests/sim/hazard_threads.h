/* SPDX-License-Identifier: MIT */
/* hazard_threads.h - threads of scenarios of both kinds of hazard pointers, by the calls of their world. */
#ifndef QUIESCE_TESTS_SIM_HAZARD_THREADS_H
#define QUIESCE_TESTS_SIM_HAZARD_THREADS_H

static void generation(void *left)
{
	world_read(0);
	if (left)
		sim_spawn(generation, (void *)((intptr_t)left - 1), "reader");
	world_read(0);
}

static void handler(void)
{
	world_read(0);
}

static void signalled(void *unused)
{
	sim_set_signal(handler, 3);
	world_reader(unused);
}

/* Often the handler makes the thread's first call, just when the thread is about to make it. */
static void reads_once(void *unused)
{
	(void)unused;
	sim_set_signal(handler, 1);
	world_read(0);
}

#endif
