/* SPDX-License-Identifier: MIT */
/* libuv.c - the loop and the thread pool of libuv. */
#include "plug.h"

#include <stdio.h>
#include <uv.h>

static int bad;
static uv_mutex_t one;

static void work(uv_work_t *request)
{
	(void)request;
	uv_mutex_lock(&one);
	bad |= quiesce_try();
	uv_mutex_unlock(&one);
}

int main(void)
{
	uv_work_t requests[8];

	uv_mutex_init(&one);
	for (int i = 0; i < 8; i++)
		uv_queue_work(uv_default_loop(), &requests[i], work, NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	printf("result %d\n", bad);
	return bad != 0;
}
