/* SPDX-License-Identifier: MIT */
/* test_destructors.c - every call in destructors of thread-local storage: those that run before the library's own and after it, once
 * and as often as the system lets them.
 *
 * No destructor waits for something that its own thread holds, such as a slot that protects an object which it retires; and
 * nothing that is queued is lost.
 */
#include "testing.h"

#include <quiesce/counted_ptr.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/ida.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <limits.h>

/* ---- queued objects ---- */

static int nr_queued, nr_run;

struct object {
	union {
		struct rcu_head rcu;
		struct hazptr_head hazptr;
		struct counted counted;
	};
	uint64_t key;
};

static struct object *object_new(void)
{
	struct object *o = calloc(1, sizeof *o);

	if (!o)
		abort();
	return o;
}

static struct object *object_queued(void)
{
	count_up(&nr_queued);
	return object_new();
}

static void delete_object(void *object)
{
	count_up(&nr_run);
	free(object);
}

static void run_rcu(struct rcu_head *head)
{
	delete_object(head);
}

static void run_hazptr(struct hazptr_head *head)
{
	delete_object(head);
}

static void run_counted(struct counted *counted)
{
	delete_object(counted);
}

/* ---- the calls ---- */

DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(lock);
static struct percpu_ref ref;
static struct rcu_sync sync_state = RCU_SYNC_INIT;
static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
static struct hashmap map;
static struct idr ids;
static struct ida numbers;
static struct xarray array;

static void use_rcu(void)
{
	static void *pointer = &pointer;
	struct rcu_gp_seq seq;

	rcu_read_lock();
	rcu_read_lock();
	assert_ptr_equal(rcu_dereference(pointer), &pointer);
	rcu_read_unlock();
	rcu_read_unlock();
	assert_false(rcu_read_lock_held());
	synchronize_rcu();
	synchronize_rcu_expedited();
	seq = start_poll_synchronize_rcu();
	cond_synchronize_rcu(seq);
	assert_true(poll_state_synchronize_rcu(seq));
	assert_true(poll_state_synchronize_rcu(get_completed_synchronize_rcu()));
	cond_synchronize_rcu(get_state_synchronize_rcu());
}

static void use_call_rcu(void)
{
	call_rcu(&object_queued()->rcu, run_rcu);
	kfree_rcu(object_new(), rcu);
	kfree_rcu_mightsleep(object_new());
	rcu_throttle();
}

static void use_rcu_in_a_section(void)
{
	rcu_read_lock();
	call_rcu_sized(&object_queued()->rcu, run_rcu, 1000);
	kfree_rcu(object_new(), rcu);
	hazptr_retire(object_queued(), delete_object);
	rcu_read_unlock();
}

static void wait_for_rcu(void)
{
	rcu_barrier();
}

static void use_guards(void)
{
	static int objects[2];
	static void *pointer = &objects[0];
	struct shazptr_guard guard = shazptr_acquire(&objects[0]), other;

	other = shazptr_acquire_detached(&objects[0]);
	synchronize_shazptr(&objects[1]);
	shazptr_clear(other);
	shazptr_clear(guard);
	guard = shazptr_protect(&pointer);
	assert_ptr_equal(shazptr_ptr(guard), &objects[0]);
	shazptr_clear(guard);
	synchronize_shazptr(&objects[0]);
}

static void use_slots(void)
{
	static int object;
	static void *pointer = &object;
	struct hazptr_context ctx;
	hazptr_t *slot = hazptr_alloc(NULL), *row;

	assert_non_null(slot);
	assert_ptr_equal(hazptr_protect(slot, &pointer), &object);
	hazptr_clear(slot);
	hazptr_free(NULL, slot);
	row = hazptr_alloc_array(NULL, 3);
	assert_non_null(row);
	hazptr_free_array(NULL, row, 3);
	assert_int_equal(init_hazptr_context(&ctx), 0);
	slot = hazptr_alloc(&ctx);
	assert_ptr_equal(hazptr_protect(slot, &pointer), &object);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	synchronize_hazptr(&object);
}

/* This thread protects each of these objects itself. */
static void retire_what_it_protects(void)
{
	hazptr_t *slots[4];
	void *objects[4];

	for (int i = 0; i < 4; i++) {
		objects[i] = object_queued();
		slots[i] = hazptr_alloc(NULL);
		assert_non_null(slots[i]);
		assert_ptr_equal(hazptr_protect(slots[i], &objects[i]), objects[i]);
	}
	hazptr_retire(objects[0], delete_object);
	call_hazptr(&((struct object *)objects[1])->hazptr, run_hazptr);
	call_hazptr_inline(&((struct object *)objects[2])->hazptr, run_hazptr);
	call_hazptr_cohort(&cohort, &((struct object *)objects[3])->hazptr, run_hazptr);
	hazptr_try_barrier();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(((struct object *)objects[i])->key, 0); /* MALLOC_PERTURB_ overwrites freed memory */
		hazptr_free(NULL, slots[i]);
	}
}

/* There are more objects than free notes. */
static void retire_many(void)
{
	for (int i = 0; i < 1200; i++)
		hazptr_retire(object_queued(), delete_object);
	for (int i = 0; i < 1200; i++)
		kfree_hazptr(object_new(), hazptr);
}

static void use_hazptr(void)
{
	struct object *o = object_queued();

	call_hazptr(&object_queued()->hazptr, run_hazptr);
	call_hazptr_inline_sized(&object_queued()->hazptr, run_hazptr, HAZPTR_BATCH_BYTES);
	counted_init(&o->counted, run_counted);
	counted_put(&o->counted);
	quiesce_set_thread_hazptr_batch(0, 0); /* the thread has a queue already, or gets none */
}

static void wait_for_hazptr(void)
{
	hazptr_barrier();
	synchronize_hazptr_cohort(&cohort);
}

static void use_srcu(void)
{
	int idx = srcu_read_lock(&domain);
	struct rcu_gp_seq seq;

	srcu_read_unlock(&domain, idx);
	call_srcu(&domain, &object_queued()->rcu, run_rcu);
	synchronize_srcu(&domain);
	synchronize_srcu_expedited(&domain);
	seq = start_poll_synchronize_srcu(&domain);
	wait_until(poll_state_synchronize_srcu(&domain, seq));
	srcu_barrier(&domain);
}

static void use_locks(void)
{
	percpu_down_read(&lock);
	percpu_up_read(&lock);
	percpu_down_write(&lock);
	percpu_up_write(&lock);
	rcu_sync_enter(&sync_state);
	rcu_sync_exit(&sync_state);
	percpu_ref_get(&ref);
	percpu_ref_switch_to_atomic(&ref, NULL);
	percpu_ref_put(&ref);
	percpu_ref_switch_to_percpu(&ref);
}

static void use_containers(void)
{
	uint64_t key = (uint64_t)my_tid();
	int id = idr_alloc(&ids, &map, 0, 0), number = ida_alloc(&numbers);

	assert_true(id >= 0 && number >= 0);
	assert_int_equal(hashmap_set(&map, key, 1, NULL), 0);
	rcu_read_lock();
	assert_int_equal(hashmap_lookup(&map, key), 1);
	assert_ptr_equal(idr_find(&ids, id), &map);
	rcu_read_unlock();
	assert_int_equal(hashmap_remove(&map, key), 1);
	assert_ptr_equal(idr_remove(&ids, id), &map);
	ida_free(&numbers, number);
	assert_int_equal(xa_store(&array, key, &map, NULL), 0);
	assert_ptr_equal(xa_erase(&array, key), &map);
}

static void use_control(void)
{
	char text[400];

	stats_now();
	quiesce_describe_settings(text, sizeof text);
	quiesce_fence();
	quiesce_set_stall_timeout(10000000000u);
	assert_int_equal(quiesce_shutdown(0), 0);
}

static const struct {
	const char *name;
	void (*use)(void);
} uses[] = {
	{ "sections and waits of RCU", use_rcu },
	{ "call_rcu(), kfree_rcu()", use_call_rcu },
	{ "retiring in a section", use_rcu_in_a_section },
	{ "rcu_barrier()", wait_for_rcu },
	{ "guards", use_guards },
	{ "slots", use_slots },
	{ "retiring what the thread protects", retire_what_it_protects },
	{ "retiring much", retire_many },
	{ "retiring for hazard pointers", use_hazptr },
	{ "waiting for hazard pointers", wait_for_hazptr },
	{ "domains", use_srcu },
	{ "locks and references", use_locks },
	{ "containers", use_containers },
	{ "control.h", use_control },
};
enum { NR_USES = sizeof uses / sizeof uses[0] };

/* ---- the places ---- */

/* C++ compilers register the destructor of a thread_local object by this call; such destructors run before those of all keys. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle;

enum place { THREAD_LOCAL, EARLIER_KEY, LATER_KEY, AGAIN, NR_PLACES };
static const char *const place_names[NR_PLACES] = { "a thread_local object", "an earlier key", "a later key", "the last round of keys" };

/* The library's key is made by its constructor. */
static pthread_key_t earlier_key, later_key;
static int nr_calls;

struct plan {
	enum place place;
	void (*use)(void);
	bool first; /* the thread has used the library before it ends */
	int rounds;
};

static void destroy(void *arg)
{
	struct plan *plan = arg;

	if (plan->place == AGAIN && plan->rounds++ < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
		pthread_setspecific(later_key, plan);
		return;
	}
	plan->use();
	nr_calls++;
}

__attribute__((constructor(101))) static void make_earlier_key(void)
{
	if (pthread_key_create(&earlier_key, destroy))
		abort();
}

static void *end_with(void *arg)
{
	struct plan *plan = arg;

	if (plan->first)
		plan->use();
	if (plan->place == THREAD_LOCAL)
		__cxa_thread_atexit_impl(destroy, plan, &__dso_handle);
	else
		pthread_setspecific(plan->place == EARLIER_KEY ? earlier_key : later_key, plan);
	return NULL;
}

static void end_a_thread(enum place place, void (*use)(void), bool first)
{
	struct plan plan = { .place = place, .use = use, .first = first };
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, end_with, &plan));
	pthread_join(thread, NULL);
}

static void everything_has_run(const char *use, enum place place)
{
	rcu_barrier();
	srcu_barrier(&domain);
	hazptr_barrier();
	synchronize_hazptr_cohort(&cohort);
	if (flag_get(&nr_run) != flag_get(&nr_queued))
		fail_msg("%s in the destructor of %s: %d queued, %d have run", use, place_names[place], flag_get(&nr_queued),
			 flag_get(&nr_run));
	synchronize_rcu(); /* hangs if a section of the thread is still counted */
}

static void each(enum place place, bool first)
{
	uint32_t readers = stats_now().readers;

	nr_calls = 0;
	for (int i = 0; i < NR_USES; i++) {
		end_a_thread(place, uses[i].use, first);
		everything_has_run(uses[i].name, place);
		alarm(watchdog_seconds());
	}
	assert_int_equal(nr_calls, NR_USES);
	assert_int_equal(stats_now().readers, readers);
}

/* A first use in the last round is not supported: the library would not learn that the thread is gone. */
static void at(enum place place)
{
	each(place, true);
	if (place != AGAIN)
		each(place, false);
}

static void before_the_librarys_in_cpp(void **state)
{
	(void)state;
	at(THREAD_LOCAL);
}

static void before_the_librarys(void **state)
{
	(void)state;
	at(EARLIER_KEY);
}

static void after_the_librarys(void **state)
{
	(void)state;
	at(LATER_KEY);
}

static void after_the_librarys_in_the_last_round(void **state)
{
	(void)state;
	at(AGAIN);
}

/* Many threads that end in this way leave nothing behind: no queue, no line of slots. */
static void use_a_little(void)
{
	hazptr_retire(object_queued(), delete_object);
	use_slots();
	use_guards();
	call_rcu(&object_queued()->rcu, run_rcu);
}

static void threads_that_end_leave_nothing(void **state)
{
	uint64_t lines;

	(void)state;
	for (int i = 0; i < 20; i++)
		end_a_thread(i % NR_PLACES, use_a_little, i % NR_PLACES == AGAIN || i & 4);
	lines = stats_now().slots_lines;
	for (int i = 0; i < 400; i++)
		end_a_thread(i % NR_PLACES, use_a_little, i % NR_PLACES == AGAIN || i & 4);
	everything_has_run("many", LATER_KEY);
	assert_in_range(stats_now().slots_lines, 0, lines + 4);
	assert_in_range(stats_now().queues, 0, 4);
}

static void released(struct percpu_ref *unused)
{
	(void)unused;
}

static int prepare(void **state)
{
	(void)state;
	hashmap_init(&map);
	idr_init(&ids);
	ida_init(&numbers);
	xa_init(&array);
	return pthread_key_create(&later_key, destroy) || percpu_ref_init(&ref, released, PERCPU_REF_ALLOW_REINIT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(before_the_librarys_in_cpp),
		TEST(before_the_librarys),
		TEST(after_the_librarys),
		TEST(after_the_librarys_in_the_last_round),
		TEST(threads_that_end_leave_nothing),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, prepare, NULL);
}
