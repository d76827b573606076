/* SPDX-License-Identifier: MIT */
/* test_idr_load.c - idr compared with a plain model, and under readers, which must never see another id's object. */
#include <quiesce/ds/idr.h>

#include "testing.h"

#define PTR(n) ((void *)(uintptr_t)(n))

static void must_be_empty(const struct idr *idr)
{
	assert_true(idr_is_empty(idr));
	assert_int_equal(idr_count(idr), 0);
	assert_int_equal(idr->tree.nr_nodes, 0);
}

/* ---- against a plain model ---- */

#define MOST 700

/* The model: an array of ids in ascending order. */
struct model {
	unsigned long id[MOST];
	void *value[MOST];
	int n;
	unsigned int next;
};

/* Return the place where @id is, or would be inserted. */
static int model_at(const struct model *m, unsigned long id)
{
	int i = 0;

	while (i < m->n && m->id[i] < id)
		i++;
	return i;
}

static bool model_has(const struct model *m, unsigned long id)
{
	int i = model_at(m, id);

	return i < m->n && m->id[i] == id;
}

static unsigned long model_free(const struct model *m, unsigned long start)
{
	for (int i = model_at(m, start); i < m->n && m->id[i] == start; i++)
		start++;
	return start;
}

static void model_add(struct model *m, unsigned long id, void *value)
{
	int i = model_at(m, id);

	memmove(&m->id[i + 1], &m->id[i], (m->n - i) * sizeof *m->id);
	memmove(&m->value[i + 1], &m->value[i], (m->n - i) * sizeof *m->value);
	m->id[i] = id;
	m->value[i] = value;
	m->n++;
}

static void *model_remove(struct model *m, unsigned long id)
{
	int i = model_at(m, id);
	void *value;

	if (!model_has(m, id))
		return NULL;
	value = m->value[i];
	m->n--;
	memmove(&m->id[i], &m->id[i + 1], (m->n - i) * sizeof *m->id);
	memmove(&m->value[i], &m->value[i + 1], (m->n - i) * sizeof *m->value);
	return value;
}

/* Return the number of nodes that the tree needs: one on each level for every prefix of an id. */
static size_t model_nodes(const struct model *m)
{
	size_t nr = 0;
	int shift = 0;

	if (!m->n)
		return 0;
	do {
		shift += QUIESCE_RADIX_BITS;
		for (int i = 0; i < m->n; i++)
			nr += i == 0 || m->id[i] >> shift != m->id[i - 1] >> shift;
	} while (m->id[m->n - 1] >> shift);
	return nr;
}

static uint64_t seed;

static unsigned int draw(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)((seed >> 33) % below);
}

static int some_id(void)
{
	static const int base[] = { 0, 0, 0, 60, 64, 120, 4090, 4096, 262140, 1073741820, INT_MAX - 8 };
	int id = base[draw(sizeof base / sizeof *base)];

	return id + (int)draw(id == INT_MAX - 8 ? 9 : draw(2) ? 10 : 200);
}

static void one_alloc(struct idr *idr, struct model *m)
{
	int start = some_id(), end = start > INT_MAX - 20 || draw(2) ? 0 : start + (int)draw(20);
	unsigned long max = end > 0 ? (unsigned long)end - 1 : INT_MAX, id = model_free(m, start);
	void *value = draw(8) ? PTR(1 + draw(1000000)) : NULL;
	int got;

	if (m->n == MOST)
		return;
	if (draw(3)) {
		got = idr_alloc(idr, value, start, end);
	} else {
		got = idr_alloc_cyclic(idr, value, start, end);
		id = model_free(m, m->next > (unsigned int)start ? m->next : (unsigned int)start);
		if (id > max)
			id = model_free(m, start);
		if (id <= max)
			m->next = (unsigned int)id + 1;
	}
	if (id > max) {
		assert_int_equal(got, -ENOSPC);
		return;
	}
	assert_int_equal(got, id);
	model_add(m, id, value);
}

static void one_step(struct idr *idr, struct model *m)
{
	unsigned long id = m->n && draw(2) ? m->id[draw(m->n)] : (unsigned long)some_id();
	void *value = PTR(1 + draw(1000000)), *old = m;
	bool has = model_has(m, id);

	switch (draw(8)) {
	case 0: case 1: case 2:
		one_alloc(idr, m);
		break;
	case 3: case 4:
		assert_ptr_equal(idr_remove(idr, id), model_remove(m, id));
		break;
	case 5:
		assert_int_equal(idr_replace(idr, value, id, &old), has ? 0 : -ENOENT);
		assert_ptr_equal(old, has ? m->value[model_at(m, id)] : (void *)m);
		if (has)
			m->value[model_at(m, id)] = value;
		break;
	default:
		assert_ptr_equal(idr_find(idr, id), has ? m->value[model_at(m, id)] : NULL); /* no other thread updates it */
	}
}

static void compare(const struct idr *idr, const struct model *m)
{
	int i = 0, id;
	void *p;

	assert_int_equal(idr_count(idr), m->n);
	assert_int_equal(idr->tree.nr_nodes, model_nodes(m));
	idr_for_each_entry(idr, p, id) {
		while (i < m->n && !m->value[i])
			i++;
		assert_true(i < m->n);
		assert_int_equal(id, m->id[i]);
		assert_ptr_equal(p, m->value[i++]);
	}
	while (i < m->n && !m->value[i])
		i++;
	assert_int_equal(i, m->n);
}

static void as_the_model(void **state)
{
	static struct model m;
	struct idr idr;

	(void)state;
	for (int round = 0; round < 20; round++) {
		idr_init(&idr);
		m.n = 0;
		m.next = 0;
		seed = 1000 + round;
		for (int i = 0; i < 1500; i++) {
			one_step(&idr, &m);
			if (i % 16 == 0)
				compare(&idr, &m);
		}
		while (m.n && round % 2) {
			unsigned long id = m.id[draw(m.n)];

			assert_ptr_equal(idr_remove(&idr, id), model_remove(&m, id));
			compare(&idr, &m);
		}
		if (round % 2)
			must_be_empty(&idr);
		idr_destroy(&idr);
	}
}

/* ---- many threads ---- */

#define NR_THREADS 3
#define NR_ROUNDS 6000 /* rounds of each updater, at least; they go on until readers have found as many */
#define NR_FINDS 20000
#define NR_HELD 100

struct object {
	struct rcu_head rcu;
	uint32_t id;
	uint32_t alive;
};

static DEFINE_IDR(shared);
static int stop, nr_found, nr_wrong;

static void object_free(struct rcu_head *head)
{
	struct object *o = (struct object *)head;

	quiesce_store_relaxed(&o->alive, 0);
	free(o);
}

static void check_object(const struct object *o, unsigned long id)
{
	count_up(&nr_found);
	if (quiesce_load_relaxed(&o->id) != id || !quiesce_load_relaxed(&o->alive))
		count_up(&nr_wrong);
}

static void *reader_main(void *arg)
{
	unsigned long id = (uintptr_t)arg;
	struct object *o;

	for (int i = 0; !flag_get(&stop); i++, id = (id * 5 + 1) % 8192) {
		rcu_read_lock();
		o = idr_find(&shared, id);
		if (o)
			check_object(o, id);
		if (i % 256 == 0)
			idr_for_each_entry_ul(&shared, o, id)
				check_object(o, id);
		rcu_read_unlock();
	}
	return NULL;
}

/* The place of new ids moves up and down, so that the tree grows and shrinks. */
static struct object *object_new(unsigned int i)
{
	static const uint32_t base[] = { 0, 60, 4090, 0, 130, 5000 };
	struct object *o = malloc(sizeof *o);

	if (!o)
		abort();
	o->alive = 1;
	o->id = base[i / 500 % 6];
	if (idr_alloc_u32(&shared, o, &o->id, UINT32_MAX))
		abort();
	return o;
}

static void *updater_main(void *arg)
{
	struct object *held[NR_HELD] = { NULL }, **o;
	unsigned int most = (uintptr_t)arg, left = most;

	for (unsigned int i = 0; left; i++) {
		bool more = i < NR_ROUNDS || flag_get(&nr_found) < NR_FINDS;

		o = &held[i % most];
		if (*o) {
			if (idr_remove(&shared, (*o)->id) != *o)
				count_up(&nr_wrong);
			call_rcu(&(*o)->rcu, object_free);
		}
		*o = more ? object_new(i) : NULL;
		left -= !more;
	}
	return NULL;
}

static void readers_and_updaters(void **state)
{
	pthread_t reader[NR_THREADS], updater[NR_THREADS];

	(void)state;
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&reader[i], NULL, reader_main, (void *)(i * 1000)));
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&updater[i], NULL, updater_main, (void *)(NR_HELD - i * 3)));
	threads_end(updater, NR_THREADS);
	flag_set(&stop);
	threads_end(reader, NR_THREADS);
	assert_true(nr_found >= NR_FINDS);
	assert_int_equal(nr_wrong, 0);
	must_be_empty(&shared);
	rcu_barrier();
	assert_int_equal(stats_now().garbage_objects, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { TEST(as_the_model), TEST(readers_and_updaters) };

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
