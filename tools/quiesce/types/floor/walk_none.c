/* SPDX-License-Identifier: MIT */
/* walk_none.c - the floor: readers protect nothing, and nothing is freed while readers may run. */
#include "types/walk.h"
#include "types/walk_section.h"

#define WALK_SCHEME none
#define WALK_WHAT "no protection: what is removed stays until the end (a limit)"
#define WALK_RANK 100
#define WALK_FENCES false

/* Nodes that the thread has removed; they are joined with the others' when it exits. */
static __thread union walk_head *mine;
static union walk_head *all;
static uint32_t lock;

WALK_SECTION((void)0, (void)0)

static void walk_retire(struct walk_node *node)
{
	node->head.scheme[0] = mine;
	mine = &node->head;
	retire_note();
}

static void walk_thread_exit(void)
{
	hash_spin_lock(&lock);
	while (mine) {
		union walk_head *head = mine;

		mine = head->scheme[0];
		head->scheme[0] = all;
		all = head;
	}
	hash_spin_unlock(&lock);
	retire_tally_leave();
}

/* Frees the nodes of the threads that have exited. */
static void walk_barrier(void)
{
	while (all) {
		union walk_head *head = all;

		all = head->scheme[0];
		walk_free(head);
	}
}

#define walk_thread_enter NULL
#define walk_init NULL
#define walk_stats NULL
#define walk_waiting retire_waiting
#include "types/walk_types.h"
