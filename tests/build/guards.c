/* SPDX-License-Identifier: MIT */
/* guards.c - guards in every form that a compiler may give them; for guards.py.
 *
 * Compiled twice and linked: as the part with main() and as PART_TWO.  Inline functions and templates
 * are in both.  Each guard's slot must hold the guard's address; if not, a compiler has lost it.
 */
#include <quiesce/control.h>
#include <quiesce/shazptr.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NR_SETTLED 40 /* more threads than have a line of slots from the start; later threads claim elsewhere */
#define NR_GUARDS 90 /* more guards than a block and a line have slots */

#ifdef __cplusplus
extern "C" {
#endif
void part_two(char *address);
extern int nr_wrong;
void report_wrong(const void *address, uintptr_t found);
#ifdef __cplusplus
}
#define SHARED_INLINE inline
#else
#define SHARED_INLINE static inline
#endif

/* Check the slot; inline, and without a use of the guard's own pointer, because later uses change how values are kept. */
SHARED_INLINE void expect_held(struct shazptr_guard guard, const void *address)
{
	uintptr_t found = quiesce_load_relaxed(guard.slot); /* Relaxed: of this thread. */

	if (found != (uintptr_t)address)
		report_wrong(address, found);
}

/* One after the other into an array: values live across many claims. */
SHARED_INLINE void in_a_loop(char *address)
{
	struct shazptr_guard guard[NR_GUARDS];

	for (int i = 0; i < NR_GUARDS; i++)
		guard[i] = shazptr_acquire(address + i);
	for (int i = NR_GUARDS; i-- > 0;)
		expect_held(guard[i], address + i);
	for (int i = 0; i < NR_GUARDS; i++)
		shazptr_clear(guard[i]);
}

/* Only the slots are kept, so the address dies in the claim.  Where a compiler's "asm goto" had results
 * that broke, it was lost right there. */
static __attribute__((noinline)) void slots_only(char *address)
{
	void *const object[3] = { address, address + 1, address + 2 };
	struct shazptr_guard guard;
	uintptr_t *slot[3];

	for (int i = 0; i < 3; i++)
		slot[i] = shazptr_acquire(object[i]).slot;
	for (int i = 0; i < 3; i++) {
		guard.slot = slot[i];
		guard.ptr = object[i];
		expect_held(guard, object[i]);
		shazptr_clear(guard);
	}
}

/* Take guards in an unrolled loop, with the results in registers. */
SHARED_INLINE void in_a_row(char *address)
{
	void *pointer = address + 3;
	struct shazptr_guard a = shazptr_acquire(address), b = shazptr_acquire(address + 1), c = shazptr_acquire(address + 2);
	struct shazptr_guard d = shazptr_protect(&pointer), e = shazptr_tryprotect(&pointer);

	expect_held(a, address);
	expect_held(b, address + 1);
	expect_held(c, address + 2);
	expect_held(d, address + 3);
	expect_held(e, address + 3);
	shazptr_clear(c);
	shazptr_clear(a);
	shazptr_clear(e);
	shazptr_clear(b);
	shazptr_clear(d);
}

SHARED_INLINE int in_recursion(char *address, int depth)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(address + depth);
	int below = depth ? in_recursion(address, depth - 1) : 0;

	expect_held(guard, address + depth);
	return below + 1;
}

#ifdef __cplusplus
/* A wrapper as C++ programs write it. */
template <typename T> class protector {
public:
	explicit protector(T **where) : guard(shazptr_protect(where)) {}
	~protector() { shazptr_clear(guard); }
	T *get() const { return static_cast<T *>(shazptr_ptr(guard)); }
	struct shazptr_guard guard;

private:
	protector(const protector &);
	protector &operator=(const protector &);
};

template <typename T> T sum_protected(T *array, int nr)
{
	T sum = T();

	for (int i = 0; i < nr; i++) {
		T *pointer = array + i;
		protector<T> outer(&pointer), inner(&pointer);

		expect_held(outer.guard, pointer);
		expect_held(inner.guard, pointer);
		sum += *inner.get();
	}
	return sum;
}

inline void throw_inside(char *address)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(address);

	expect_held(guard, address);
	throw 1;
}

inline void in_cpp(char *address)
{
	static int ints[4] = { 1, 2, 3, 4 };
	static double doubles[4] = { 1, 2, 3, 4 };

	if (sum_protected(ints, 4) != 10 || sum_protected(doubles, 4) != 10.0)
		nr_wrong++;
	try {
		throw_inside(address);
		nr_wrong++;
	} catch (int) {
	}
}
#endif

SHARED_INLINE void all_shapes(char *address)
{
	slots_only(address);
	in_a_row(address);
	in_a_loop(address);
	in_a_row(address);
	if (in_recursion(address, 20) != 21)
		nr_wrong++;
#ifdef __cplusplus
	in_cpp(address);
#endif
	synchronize_shazptr(SHAZPTR_WILDCARD); /* hangs if anything is left */
}

#ifdef PART_TWO
void part_two(char *address)
{
	all_shapes(address);
}
#else
int nr_wrong;
static char objects[NR_GUARDS];
static pthread_barrier_t settled;

void report_wrong(const void *address, uintptr_t found)
{
	nr_wrong++;
	fprintf(stderr, "a guard of %p is one of %#lx\n", address, (unsigned long)found);
}

static void *settle(void *unused)
{
	shazptr_clear(shazptr_acquire(objects));
	pthread_barrier_wait(&settled);
	pthread_barrier_wait(&settled);
	return unused;
}

static void *use_all(void *unused)
{
	all_shapes(objects);
	part_two(objects);
	return unused;
}

int main(void)
{
	pthread_t thread[NR_SETTLED], late;

	pthread_barrier_init(&settled, NULL, NR_SETTLED + 1);
	for (int i = 0; i < NR_SETTLED; i++)
		if (pthread_create(&thread[i], NULL, settle, NULL))
			abort();
	pthread_barrier_wait(&settled);
	if (pthread_create(&late, NULL, use_all, NULL))
		abort();
	pthread_join(late, NULL);
	pthread_barrier_wait(&settled);
	for (int i = 0; i < NR_SETTLED; i++)
		pthread_join(thread[i], NULL);
	use_all(NULL);
	printf("%d wrong\n", nr_wrong);
	return nr_wrong != 0;
}
#endif
