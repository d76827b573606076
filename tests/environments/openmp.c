/* SPDX-License-Identifier: MIT */
/* openmp.c - the threads of an OpenMP loop. */
#include "plug.h"

#include <stdio.h>

int main(void)
{
	int bad = 0;

#pragma omp parallel for reduction(| : bad) num_threads(4)
	for (int i = 0; i < 16; i++) {
#pragma omp critical
		bad |= quiesce_try();
	}
	printf("result %d\n", bad);
	return bad != 0;
}
