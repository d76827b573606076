/* SPDX-License-Identifier: MIT */
/* test_xarray_load.c - xarray compared with a plain model, and under readers, which must visit each entry that stays. */
#include "xarray_edges.h"

static uint64_t draw(uint64_t *random, uint64_t below)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return (*random >> 20) % below;
}

/* ---- against a plain model ---- */

/* The model: all indices that are ever used, in order, with their entries and marks. */
#define NR_PLACES 400
static struct place {
	unsigned long index;
	void *entry;
	unsigned int marks;
	bool taken;
} place[NR_PLACES];
static uint64_t seed;
static DEFINE_XARRAY(one);

static int by_index(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static void places_choose(void)
{
	for (int i = 0; i < NR_PLACES; i++) {
		place[i] = (struct place){ .index = i < NR_EDGES ? edge[i] : i < 150 ? (unsigned long)i + 20 : i < 250 ? 4000ul + i : 0 };
		if (i >= 250) /* indices of every magnitude; a repeated index is unlikely, and becomes the next one */
			place[i].index = (draw(&seed, 1ul << 44) << 20 | (unsigned long)i << 8) >> draw(&seed, 45);
	}
	qsort(place, NR_PLACES, sizeof *place, by_index);
	for (int i = 1; i < NR_PLACES; i++)
		if (place[i].index <= place[i - 1].index)
			place[i].index = place[i - 1].index + 1;
}

static bool model_has(const struct place *p, xa_mark_t filter)
{
	return p->entry && (filter == XA_PRESENT || p->marks >> filter & 1);
}

static void model_free(struct place *p)
{
	p->entry = NULL;
	p->marks = 0;
	p->taken = false;
}

static void one_cmpxchg(struct place *p, void *fresh)
{
	void *expected = draw(&seed, 2) ? p->entry : PTR(3), *entry = draw(&seed, 2) ? fresh : NULL, *old = p;

	assert_int_equal(xa_cmpxchg(&one, p->index, expected, entry, &old), expected == p->entry ? 0 : -EBUSY);
	assert_ptr_equal(old, p->entry);
	if (expected != p->entry)
		return;
	if (!entry)
		model_free(p);
	p->entry = entry;
	p->taken = entry != NULL;
}

static void one_find(void)
{
	xa_mark_t filter = (xa_mark_t)draw(&seed, 4);
	unsigned long from = place[draw(&seed, NR_PLACES)].index + draw(&seed, 3) - 1, at = from;
	unsigned long end = draw(&seed, 2) ? ULONG_MAX : place[draw(&seed, NR_PLACES)].index;
	const struct place *up = place, *down = place + NR_PLACES - 1;

	while (up < place + NR_PLACES && !(up->index >= from && model_has(up, filter)))
		up++;
	up = up < place + NR_PLACES && up->index <= end ? up : NULL;
	assert_ptr_equal(xa_find(&one, &at, end, filter), up ? up->entry : NULL);
	assert_int_equal(at, up ? up->index : from);
	end = draw(&seed, 2) ? 0 : end;
	at = from;
	while (down >= place && !(down->index <= from && model_has(down, filter)))
		down--;
	down = down >= place && down->index >= end ? down : NULL;
	assert_ptr_equal(xa_find_reverse(&one, &at, end, filter), down ? down->entry : NULL);
	assert_int_equal(at, down ? down->index : from);
}

static void one_mark(struct place *p)
{
	xa_mark_t mark = (xa_mark_t)draw(&seed, 3);

	if (draw(&seed, 3)) {
		xa_set_mark(&one, p->index, mark);
		p->marks |= p->entry ? 1u << mark : 0;
	} else {
		xa_clear_mark(&one, p->index, mark);
		p->marks &= ~(1u << mark);
	}
}

static void one_store(struct place *p, void *fresh)
{
	void *old = p;

	if (draw(&seed, 2)) {
		assert_int_equal(xa_insert(&one, p->index, fresh), p->taken ? -EBUSY : 0);
		fresh = p->taken ? p->entry : fresh;
	} else {
		assert_int_equal(xa_store(&one, p->index, fresh, &old), 0);
		assert_ptr_equal(old, p->entry);
	}
	p->entry = fresh;
	p->taken = true;
}

static void one_step(void *fresh, bool filling)
{
	struct place *p = &place[draw(&seed, NR_PLACES)];

	switch (draw(&seed, 10)) {
	case 0: case 1: case 2:
		if (filling)
			one_store(p, fresh);
		break;
	case 3: case 4:
		assert_ptr_equal(xa_erase(&one, p->index), p->entry);
		model_free(p);
		break;
	case 5:
		assert_int_equal(xa_reserve(&one, p->index), 0);
		p->taken = true;
		break;
	case 6:
		xa_release(&one, p->index);
		if (!p->entry)
			model_free(p);
		break;
	case 7:
		one_cmpxchg(p, fresh);
		break;
	case 8:
		one_mark(p);
		break;
	default:
		one_find();
	}
}

/* Return the number of nodes that the tree needs: one on each level for every prefix of an index. */
static size_t model_nodes(void)
{
	const struct place *last = NULL;
	unsigned long top = 0;
	size_t nr = 0;
	int levels = 1;

	for (int i = 0; i < NR_PLACES; i++)
		top = place[i].taken ? place[i].index : top;
	while (levels < 11 && top >> 6 * levels)
		levels++;
	for (int i = 0; i < NR_PLACES; i++) {
		if (!place[i].taken)
			continue;
		for (int level = 1; level <= levels; level++)
			nr += !last || (level < 11 && place[i].index >> 6 * level != last->index >> 6 * level);
		last = &place[i];
	}
	return nr;
}

static void compare_marks(xa_mark_t filter)
{
	void *some[NR_PLACES];
	unsigned int nr = 0, n = xa_extract(&one, some, 0, ULONG_MAX, NR_PLACES, filter);

	for (int i = 0; i < NR_PLACES; i++)
		if (model_has(&place[i], filter)) {
			assert_true(nr < n);
			assert_ptr_equal(some[nr++], place[i].entry);
		}
	assert_int_equal(n, nr);
	assert_int_equal(xa_marked(&one, filter), nr != 0);
}

static void compare(void)
{
	unsigned long index;
	size_t count = 0;
	void *entry;
	int i = 0;

	xa_for_each(&one, index, entry) { /* no other thread updates it */
		while (i < NR_PLACES && !place[i].entry)
			i++;
		assert_true(i < NR_PLACES && place[i].index == index && place[i].entry == entry);
		i++;
	}
	while (i < NR_PLACES && !place[i].entry)
		i++;
	assert_int_equal(i, NR_PLACES);
	xa_for_each_reverse(&one, index, entry) {
		while (!place[--i].entry)
			;
		assert_true(place[i].index == index && place[i].entry == entry);
	}
	for (i = 0; i < NR_PLACES; i++) {
		assert_ptr_equal(xa_load(&one, place[i].index), place[i].entry);
		for (xa_mark_t mark = XA_MARK_0; mark <= XA_MARK_MAX; mark++)
			assert_int_equal(xa_get_mark(&one, place[i].index, mark), place[i].marks >> mark & 1);
		count += place[i].taken;
	}
	for (xa_mark_t filter = XA_MARK_0; filter <= XA_PRESENT; filter++)
		compare_marks(filter);
	assert_int_equal(xa_count(&one), count);
	assert_int_equal(one.tree.nr_nodes, model_nodes());
}

static void as_the_model(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++) {
		seed = 1000 + round;
		places_choose();
		for (uintptr_t i = 0; i < 12000; i++) {
			one_step(PTR(1000 + i), i / 3000 % 2 == 0);
			if (i % 50 == 0)
				compare();
		}
		xa_destroy(&one);
		assert_true(xa_empty(&one));
	}
}

/* ---- many threads ---- */

#define NR_THREADS 3
#define NR_ROUNDS 4000 /* rounds of each updater, at least; they go on until readers have made as many passes */
#define NR_PASSES 2000
#define NR_HELD 40

struct object {
	struct rcu_head rcu;
	unsigned long index;
	int alive;
};

/* There all the time, and with XA_MARK_0: at the ends of nodes, in some where others come and go.  Low, as the tree is to shrink. */
static const unsigned long always[] = { 0, 1, 62, 63, 64, 127, 130, 500, 4030, 4094 };
enum { NR_ALWAYS = LENGTH(always) };
static struct object always_object[NR_ALWAYS];

static DEFINE_XARRAY(shared);
static int stop, nr_passes, nr_wrong;

static void wrong_unless(bool right)
{
	if (!right)
		count_up(&nr_wrong);
}

static void object_free(struct rcu_head *head)
{
	struct object *o = (struct object *)head;

	quiesce_store_relaxed(&o->alive, 0);
	free(o);
}

static struct object *object_new(unsigned long index)
{
	struct object *o = malloc(sizeof *o);

	if (!o)
		abort();
	o->index = index;
	o->alive = 1;
	return o;
}

/* State of an iteration that checks each entry: in order, alive, at its index, and no entry that stays is skipped. */
struct pass {
	bool down;
	int nr, nr_always;
	unsigned long last;
};

static void meet(struct pass *pass, unsigned long index, const struct object *o)
{
	int next = pass->down ? NR_ALWAYS - 1 - pass->nr_always : pass->nr_always;

	wrong_unless(!pass->nr++ || (pass->down ? index < pass->last : index > pass->last));
	wrong_unless(quiesce_load_relaxed(&o->index) == index && quiesce_load_relaxed(&o->alive));
	pass->last = index;
	if (pass->nr_always < NR_ALWAYS && index == always[next])
		pass->nr_always++;
}

static void pass_up(xa_mark_t filter)
{
	struct pass pass = { .down = false };
	unsigned long index;
	struct object *o;

	rcu_read_lock();
	if (filter == XA_PRESENT)
		xa_for_each(&shared, index, o)
			meet(&pass, index, o);
	else
		xa_for_each_marked(&shared, index, o, filter)
			meet(&pass, index, o);
	rcu_read_unlock();
	wrong_unless(pass.nr_always == NR_ALWAYS);
}

static void pass_down(xa_mark_t filter)
{
	struct pass pass = { .down = true };
	unsigned long index = ULONG_MAX;
	struct object *o;

	rcu_read_lock();
	for (o = xa_find_reverse(&shared, &index, 0, filter); o; o = xa_find_before(&shared, &index, 0, filter))
		meet(&pass, index, o);
	rcu_read_unlock();
	wrong_unless(pass.nr_always == NR_ALWAYS);
}

static void pass_at_once(xa_mark_t filter)
{
	struct pass pass = { .down = false };
	void *some[NR_ALWAYS + NR_THREADS * NR_HELD];
	unsigned int nr;

	rcu_read_lock();
	nr = xa_extract(&shared, some, 0, ULONG_MAX, LENGTH(some), filter);
	for (unsigned int i = 0; i < nr; i++) {
		const struct object *o = some[i];

		meet(&pass, o->index, o);
	}
	rcu_read_unlock();
	/* There are never more entries than this at a time, but a pass may meet more. */
	wrong_unless(pass.nr_always == NR_ALWAYS || nr == LENGTH(some));
}

static void check_entry(unsigned long index)
{
	const struct object *o;

	rcu_read_lock();
	o = xa_load(&shared, index);
	wrong_unless(!o || (quiesce_load_relaxed(&o->index) == index && quiesce_load_relaxed(&o->alive)));
	rcu_read_unlock();
}

static void *reader_main(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	while (!flag_get(&stop)) {
		for (xa_mark_t filter = XA_MARK_0; filter <= XA_PRESENT; filter += XA_PRESENT) {
			pass_up(filter);
			pass_down(filter);
			pass_at_once(filter);
		}
		for (int i = 0; i < NR_ALWAYS; i++) {
			rcu_read_lock();
			wrong_unless(xa_load(&shared, always[i]) == &always_object[i] && xa_get_mark(&shared, always[i], XA_MARK_0));
			rcu_read_unlock();
			check_entry(draw(&random, 8192));
		}
		count_up(&nr_passes);
	}
	return NULL;
}

/* Choose an index beside entries that stay, or far away, where entries stay for a while: the tree grows and shrinks in height. */
static unsigned long some_index(uint64_t *random, unsigned int i)
{
	static const unsigned long base[] = { 0, 60, 4000, 0, 4090, 200000, 0, 1ul << 30, 0, ULONG_MAX - 99 };

	return base[i / 200 % LENGTH(base)] + draw(random, 100);
}

static void *updater_main(void *arg)
{
	uint64_t random = 77 + (uintptr_t)arg;
	struct object *held[NR_HELD] = { NULL }, **o;
	unsigned int left = NR_HELD;

	for (unsigned int i = 0; left; i++) {
		bool more = i < NR_ROUNDS || flag_get(&nr_passes) < NR_PASSES;

		o = &held[i % NR_HELD];
		if (*o) {
			wrong_unless(xa_erase(&shared, (*o)->index) == *o);
			call_rcu(&(*o)->rcu, object_free);
			*o = NULL;
		}
		left -= !more;
		if (!more)
			continue;
		*o = object_new(some_index(&random, i));
		if (xa_insert(&shared, (*o)->index, *o)) { /* another thread has an entry there */
			free(*o);
			*o = NULL;
			continue;
		}
		if (i % 2)
			xa_set_mark(&shared, (*o)->index, XA_MARK_0);
		if (i % 4 == 1)
			xa_clear_mark(&shared, (*o)->index, XA_MARK_0);
	}
	return NULL;
}

static void readers_and_updaters(void **state)
{
	pthread_t reader[NR_THREADS], updater[NR_THREADS];

	(void)state;
	for (int i = 0; i < NR_ALWAYS; i++) {
		always_object[i] = (struct object){ .index = always[i], .alive = 1 };
		assert_int_equal(xa_store(&shared, always[i], &always_object[i], NULL), 0);
		xa_set_mark(&shared, always[i], XA_MARK_0);
	}
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&reader[i], NULL, reader_main, (void *)i));
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&updater[i], NULL, updater_main, (void *)i));
	threads_end(updater, NR_THREADS);
	flag_set(&stop);
	threads_end(reader, NR_THREADS);
	assert_true(nr_passes >= NR_PASSES);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(xa_count(&shared), NR_ALWAYS);
	xa_destroy(&shared);
	rcu_barrier();
	assert_int_equal(stats_now().garbage_objects, 0);
}

/* ---- a thread that has seen a mark finds the entry by it ---- */

/* A mark is seen where the other thread pauses meanwhile, which is rare where both have a CPU and ThreadSanitizer slows the calls. */
#define NR_SEEN (QUIESCE_TSAN ? 5000 : 200000)
#define FAR (ULONG_MAX - 5)

static DEFINE_XARRAY(deep);
static uint64_t phase; /* odd: the mark is being set, or is set */
static int nr_seen;

/* raw: orders what tests do, not what the library does */
#define PHASE_GET() __atomic_load_n(&phase, __ATOMIC_SEQ_CST)
/* raw: orders what tests do, not what the library does */
#define PHASE_NEXT() __atomic_add_fetch(&phase, 1, __ATOMIC_SEQ_CST)

static void *marker_main(void *unused)
{
	while (flag_get(&nr_seen) < NR_SEEN) {
		PHASE_NEXT();
		xa_set_mark(&deep, FAR, XA_MARK_1);
		PHASE_NEXT();
		xa_clear_mark(&deep, FAR, XA_MARK_1);
	}
	return unused;
}

/* No updater clears the mark between two calls in the same odd phase, so a mark that the first call has seen the second must see. */
static void read_twice(bool by_finding)
{
	uint64_t before = PHASE_GET();
	unsigned long index = FAR;
	bool first, second;

	rcu_read_lock();
	first = by_finding ? xa_marked(&deep, XA_MARK_1) : xa_get_mark(&deep, FAR, XA_MARK_1);
	second = xa_find(&deep, &index, ULONG_MAX, XA_MARK_1) != NULL;
	rcu_read_unlock();
	if (PHASE_GET() != before)
		return;
	wrong_unless(before % 2 ? second || !first : first || !second);
	if (first)
		count_up(&nr_seen);
}

static void a_mark_once_seen_is_found(void **state)
{
	pthread_t marker;

	(void)state;
	nr_wrong = 0;
	assert_int_equal(xa_store(&deep, FAR, PTR(1), NULL), 0);
	assert_int_equal(xa_store(&deep, 0, PTR(1), NULL), 0);
	thread_must(pthread_create(&marker, NULL, marker_main, NULL));
	for (int i = 0; flag_get(&nr_seen) < NR_SEEN; i++)
		read_twice(i % 2);
	pthread_join(marker, NULL);
	assert_int_equal(nr_wrong, 0);
	xa_destroy(&deep);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { TEST(as_the_model), TEST(readers_and_updaters), TEST(a_mark_once_seen_is_found) };

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
