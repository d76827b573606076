/* SPDX-License-Identifier: MIT */
/* failing.c - each call while the n-th thread, mapping, sleep or fence fails, for each n that there is; from the start, and after
 * everything has worked.
 *
 * The failing call is counted in the process, so any thread may make it, a bystander, too.
 */
#include "kernel.h"
#include "world.h"

#include <sys/mman.h>

enum start { AT_ONCE, AFTER_USE, FROM_EXEC };

static const char *const starts[] = { "from the beginning", "after use", "from the first of the process" };

struct failure {
	const struct call *call;
	int what, n;
	enum start start;
	int *ret_count; /* shared with the cell: how many calls of that kind there were */
};

/* There are no bystanders if the next start of a thread fails, because threads of the test itself must start. */
static void begin(struct world *w, const struct failure *f)
{
	world_begin(w, f->what == FAIL_THREAD && f->start == AT_ONCE ? 0 : NR_BYSTANDERS);
}

static void call_failing(struct world *w, const struct failure *f)
{
	w->memory_fails = f->what == FAIL_MMAP || f->what == FAIL_MPROTECT;
	world_call(w, f->call);
	*f->ret_count = kernel_count(f->what);
	kernel_fails(f->what, 0);
	w->memory_fails = false;
	world_settle(w);
}

static void fail_and_call(void *arg)
{
	const struct failure *f = arg;
	struct world w;

	if (f->start == AFTER_USE) {
		begin(&w, f);
		must(world_read(&w));
		waits_are_real(&w);
	}
	kernel_fails(f->what, f->n);
	if (f->start == AT_ONCE)
		begin(&w, f);
	call_failing(&w, f);
}

/* There are hundreds of sleeps in some cells. */
static int highest(int what)
{
	if (cells_are_long())
		return 40;
	return what == FAIL_FUTEX_EINTR || what == FAIL_FUTEX_WAKE ? 2 : 4;
}

static void failures_of(const struct call *call, int what, enum start start)
{
	static int *count;
	struct failure f = { .call = call, .what = what, .start = start };

	if (!count)
		count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	f.ret_count = count;
	do {
		*count = 0;
		f.n++;
		cell(fail_and_call, &f, "%s %d fails, %s - %s", fail_names[what], f.n, starts[start], call->name);
	} while (f.n < *count && f.n < highest(what));
}

/* ---- from the first call of the process on, before main() ---- */

static void fail_again(void *arg)
{
	const struct failure *f = arg;

	kernel_fails_from_start(f->what, f->n);
	again("failing", f->call->name);
}

bool failing_main(void)
{
	int count;
	struct failure f = { .call = again_call(), .start = FROM_EXEC, .ret_count = &count };
	static struct world w;

	if (strcmp(again_when(), "failing"))
		return false;
	must(f.call);
	f.what = FAIL_MMAP;
	begin(&w, &f);
	call_failing(&w, &f);
	return true;
}

/* Some calls meet each of the first few failures. */
static void first_failures(const struct call *call, size_t i)
{
	static const int kinds[] = { FAIL_MMAP, FAIL_MADVISE, FAIL_MEMBARRIER };

	for (unsigned int k = 0; k < 3; k++)
		for (unsigned int n = 1; n <= 8; n++) {
			struct failure f = { .call = call, .what = kinds[k], .n = (int)n, .start = FROM_EXEC };

			if (cell_is_drawn(i, n + k, 8))
				cell(fail_again, &f, "%s %u fails, %s - %s", fail_names[f.what], n, starts[FROM_EXEC], call->name);
		}
}

int situation_failing(void)
{
	const struct call *call;

	for_each_call(call, i) {
		for (int what = 0; what < NR_FAILS; what++) {
			if (what != FAIL_MEMBARRIER && cell_is_drawn(i, (size_t)what, 5)) /* registered before main() */
				failures_of(call, what, AT_ONCE);
			if (cell_is_drawn(i, (size_t)what + 2, 5))
				failures_of(call, what, AFTER_USE);
		}
		first_failures(call, i);
	}
	return cells_end();
}
