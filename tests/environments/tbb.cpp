/* SPDX-License-Identifier: MIT */
/* tbb.cpp - the worker threads of oneTBB. */
#include <cstdio>
#include <mutex>
#include <tbb/parallel_for.h>

extern "C" {
#include "plug.h"
}

int main()
{
	std::mutex one;
	int bad = 0;

	tbb::parallel_for(0, 16, [&](int) {
		std::lock_guard<std::mutex> guard(one);
		bad |= quiesce_try();
	});
	std::printf("result %d\n", bad);
	return bad != 0;
}
