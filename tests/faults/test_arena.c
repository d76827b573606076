/* SPDX-License-Identifier: MIT */
/* test_arena.c - how much address space the library reserves in a process, and its behaviour where that may not grow. */
#include "../unit/testing.h"
#include "filter.h"
#include "use.h"

#include <grp.h>
#include <malloc.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>
#include <sys/mman.h>

#define KIB 1024u
#define MIB (1024 * KIB)
#define AT_MAIN (3 * MIB / 2)  /* anonymous mappings of the library and of the C library */
#define AFTER_USE (3 * MIB)    /* further mappings, without stacks and arenas of threads */
#define LOCK_LIMIT (8 * MIB)   /* the usual limit */
#define STACK (128 * KIB)
enum { MANY = 24000, MORE = 18500, A_PIECE = 14000 }; /* numbers of guards; 14336 to 17920 are sure to have a slot */

#define RETRY_NS 10000000u /* arena.c waits so long before it tries again to map memory */
#define OTHER_ID 65534

static int nr_mapped; /* number of mappings at chosen addresses */

/* ---- what is mapped ---- */

struct mapping {
	unsigned long start, end;
	bool in_file;
};

static bool next_mapping(FILE *maps, struct mapping *ret)
{
	char line[512], path[256] = "";

	if (!fgets(line, sizeof line, maps))
		return false;
	must(sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &ret->start, &ret->end, path) >= 2);
	ret->in_file = path[0] != '\0'; /* the kernel's own mappings, the stack and the heap count, too */
	return true;
}

static unsigned long anonymous_bytes(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct mapping m;
	unsigned long sum = 0;

	must(maps);
	while (next_mapping(maps, &m))
		sum += m.in_file ? 0 : m.end - m.start;
	fclose(maps);
	return sum;
}

/* ---- uses ---- */

DEFINE_STATIC_SRCU(domain);
static struct percpu_ref ref;
static struct percpu_rw_semaphore sem = PERCPU_RWSEM_INIT;

static void run_nothing(struct rcu_head *head)
{
	(void)head;
}

static void release_nothing(struct percpu_ref *unused)
{
	(void)unused;
}

static bool use_counters(void)
{
	static struct rcu_head head;
	int index = srcu_read_lock(&domain);

	srcu_read_unlock(&domain, index);
	synchronize_srcu(&domain);
	call_srcu(&domain, &head, run_nothing);
	srcu_barrier(&domain);
	percpu_down_read(&sem);
	percpu_up_read(&sem);
	percpu_down_write(&sem);
	percpu_up_write(&sem);
	if (percpu_ref_init(&ref, release_nothing, 0))
		return false;
	percpu_ref_get(&ref);
	percpu_ref_put(&ref);
	percpu_ref_kill(&ref);
	return true;
}

static bool use_all(void)
{
	return use_everything() && use_counters();
}

/* Take guards of distinct objects; true if each has a slot. */
static bool guards_have_slots(struct shazptr_guard *guard, int nr)
{
	uint64_t before = stats_now().fallback_guards;

	for (int i = 0; i < nr; i++)
		guard[i] = shazptr_acquire(&guard[i]);
	return stats_now().fallback_guards == before;
}

static void clear_guards(const struct shazptr_guard *guard, int nr)
{
	for (int i = 0; i < nr; i++)
		shazptr_clear(guard[i]);
}

/* ---- programs of their own ---- */

static const char *role;

static void become(void)
{
	execl("/proc/self/exe", "test_arena", "--as", role, (char *)NULL);
	_exit(127);
}

static void plays(const char *which)
{
	role = which;
	succeeds(become);
}

static void small_stacks(void)
{
	pthread_attr_t attr;

	mallopt(M_ARENA_MAX, 1);
	pthread_attr_init(&attr);
	must(pthread_attr_setstacksize(&attr, STACK) == 0);
	must(pthread_setattr_default_np(&attr) == 0);
}

static void be_small(void)
{
	unsigned long at_main = anonymous_bytes();

	must(at_main <= AT_MAIN);
	small_stacks();
	must(use_all());
	must(stats_now().worker_running);
	must(anonymous_bytes() <= at_main + AFTER_USE);
}

static void a_process_stays_small(void **state)
{
	(void)state;
	plays("small");
}

/* ---- locked memory ---- */

/* Lock memory under a limit.  A privileged process is exempt from that, so it gives up its privileges; exit 78 if it cannot. */
static void lock_memory(int flags)
{
	struct rlimit limit = { LOCK_LIMIT, LOCK_LIMIT };

	must(!setrlimit(RLIMIT_MEMLOCK, &limit));
	if (!geteuid() && (setgroups(0, NULL) || setresgid(OTHER_ID, OTHER_ID, OTHER_ID) || setresuid(OTHER_ID, OTHER_ID, OTHER_ID)))
		_exit(78);
	must(!mlockall(flags));
}

/* With stacks of eight MiB no thread can start. */
static void lock_and_use(void)
{
	lock_memory(MCL_CURRENT | MCL_FUTURE);
	must(use_all());
}

static void lock_and_use_threads(void)
{
	small_stacks();
	lock_memory(MCL_CURRENT | MCL_FUTURE);
	must(use_all());
	must(stats_now().worker_running);
}

static void use_and_lock(void)
{
	small_stacks();
	must(use_all());
	lock_memory(MCL_CURRENT);
	must(use_all());
}

/* Take guards until the limit is reached, and then without memory. */
static void lock_and_fill(void)
{
	struct shazptr_guard *guard = calloc(MORE, sizeof *guard);
	struct rcu_head never;

	lock_memory(MCL_CURRENT | MCL_FUTURE);
	while (mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		;
	must(!guards_have_slots(guard, MORE));
	clear_guards(guard, MORE);
	synchronize_shazptr(&never);
	synchronize_rcu();
}

static void locks(const char *which)
{
	struct outcome o;

	role = which;
	in_child(become, &o);
	if (exited_with(o.status, 78))
		print_message("# privileges cannot be dropped here: not tried\n");
	else
		expect_success(&o);
}

static void a_process_can_lock_its_memory(void **state)
{
	(void)state;
	locks("locked");
}

static void a_process_can_lock_its_memory_and_have_threads(void **state)
{
	(void)state;
	locks("threads");
}

static void a_process_can_lock_its_memory_later(void **state)
{
	(void)state;
	locks("later");
}

static void no_more_memory_can_be_locked(void **state)
{
	(void)state;
	locks("full");
}

/* ---- growing ---- */

static void grow(void)
{
	struct shazptr_guard *guard = calloc(MANY, sizeof *guard);

	must(guards_have_slots(guard, MANY));
	clear_guards(guard, MANY);
	must(use_everything());
}

static void arenas_grow(void **state)
{
	(void)state;
	succeeds(grow);
}

enum { THREADS = 4 };

static void *grow_together(void *all)
{
	struct shazptr_guard guard[MANY / THREADS];
	bool good = guards_have_slots(guard, MANY / THREADS);

	pthread_barrier_wait(all);
	clear_guards(guard, MANY / THREADS);
	return good ? all : NULL;
}

static void grow_in_threads(void)
{
	pthread_barrier_t all;
	pthread_t thread[THREADS];

	pthread_barrier_init(&all, NULL, THREADS);
	threads_begin(thread, THREADS, grow_together, &all);
	for (int i = 0; i < THREADS; i++) {
		void *good;

		pthread_join(thread[i], &good);
		must(good);
	}
}

static void arenas_grow_in_several_threads(void **state)
{
	(void)state;
	succeeds(grow_in_threads);
}

static void grow_in_child(void)
{
	struct shazptr_guard *guard = calloc(MANY, sizeof *guard);
	struct outcome o;

	must(guards_have_slots(guard, MANY));
	in_child(grow, &o);
	must(exited_with(o.status, 0));
}

static void arenas_of_children_grow(void **state)
{
	(void)state;
	succeeds(grow_in_child);
}

/* Map pages behind the library's arena; returns how many there are. */
static int be_in_the_way(char *page[64])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct mapping m;
	int nr = 0;

	must(maps);
	while (next_mapping(maps, &m) && nr < 64) {
		page[nr] = mmap((void *)m.end, 4 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (page[nr] == MAP_FAILED)
			continue;
		memset(page[nr++], 0x5a, 4 * KIB);
	}
	fclose(maps);
	return nr;
}

/* Nothing of another mapping is changed, and guards do without slots, and without a system call each. */
static void stay_off_strangers(void)
{
	struct shazptr_guard *guard = calloc(MORE, sizeof *guard);
	char *page[64];
	int nr = be_in_the_way(page), calls = flag_get(&nr_mapped);

	must(!guards_have_slots(guard, MORE));
	must(flag_get(&nr_mapped) == calls + 1);
	clear_guards(guard, MORE);
	must(use_everything());
	for (int i = 0; i < nr; i++)
		for (unsigned int k = 0; k < 4 * KIB; k++)
			must(page[i][k] == 0x5a);
}

static void strangers_are_left_alone(void **state)
{
	(void)state;
	succeeds(stay_off_strangers);
}

static void grow_without_memory(void)
{
	struct shazptr_guard *guard = calloc(MORE, sizeof *guard);
	uint64_t begin;
	int calls;

	must(guards_have_slots(guard, A_PIECE));
	filter_now("mmap=ENOMEM");
	calls = flag_get(&nr_mapped);
	begin = now_ns();
	must(!guards_have_slots(guard + A_PIECE, MORE - A_PIECE));
	calls = flag_get(&nr_mapped) - calls;
	must(calls >= 1 && calls <= (int)((now_ns() - begin) / RETRY_NS) + 2);
	clear_guards(guard, MORE);
	must(use_everything());
}

static int refused;

/* Slots that could not be allocated for lack of memory are allocated later. */
static void grow_once_there_is_memory(void)
{
	struct shazptr_guard *guard = calloc(MANY, sizeof *guard);
	int got = 0;

	must(guards_have_slots(guard, A_PIECE));
	quiesce_store_relaxed(&refused, 1);
	must(!guards_have_slots(guard + A_PIECE, MORE - A_PIECE));
	quiesce_store_relaxed(&refused, 0);
	clear_guards(guard + A_PIECE, MORE - A_PIECE);
	for (int i = 0; i < 1000 && !got; i++) {
		short_rest();
		got = guards_have_slots(guard + A_PIECE, MANY - A_PIECE);
		clear_guards(guard + A_PIECE, MANY - A_PIECE);
	}
	must(got);
}

static void arenas_grow_once_there_is_memory(void **state)
{
	(void)state;
	succeeds(grow_once_there_is_memory);
}

static void arenas_cannot_grow(void **state)
{
	(void)state;
	succeeds(grow_without_memory);
}

/* ---- a fork beside a thread that extends the arena ---- */

static int stops_in_mmap; /* 1: stop the next thread that maps at a chosen address; 2: it has stopped; 3: it goes on */

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED_NOREPLACE) {
		count_up(&nr_mapped);
		if (flag_get(&refused)) {
			errno = ENOMEM;
			return MAP_FAILED;
		}
	}
	if ((flags & MAP_FIXED_NOREPLACE) && flag_get(&stops_in_mmap) == 1) {
		quiesce_store_relaxed(&stops_in_mmap, 2);
		wait_until(flag_get(&stops_in_mmap) == 3);
	}
	return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

/* Allocate up to @most slots; return their number. */
static int alloc_slots(int most)
{
	int nr = 0;

	while (nr < most && hazptr_alloc(NULL))
		nr++;
	return nr;
}

static void *alloc_many(void *ret_nr)
{
	*(int *)ret_nr = alloc_slots(MANY);
	return NULL;
}

static void do_without(void)
{
	quiesce_store_relaxed(&stops_in_mmap, 3);
	must(alloc_slots(MANY) < MANY);
	must(use_everything());
}

static void fork_beside_growth(void)
{
	struct outcome o;
	pthread_t thread;
	int nr = 0;

	quiesce_store_relaxed(&stops_in_mmap, 1);
	thread_must(pthread_create(&thread, NULL, alloc_many, &nr));
	wait_until(flag_get(&stops_in_mmap) == 2);
	in_child(do_without, &o);
	quiesce_store_relaxed(&stops_in_mmap, 3);
	pthread_join(thread, NULL);
	must(exited_with(o.status, 0));
	must(nr == MANY);
	must(use_everything());
}

static void a_child_does_without_what_was_being_added(void **state)
{
	(void)state;
	succeeds(fork_beside_growth);
}

/* ---- main ---- */

static int play(const char *name)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} roles[] = {
		{ "small", be_small },
		{ "locked", lock_and_use },
		{ "threads", lock_and_use_threads },
		{ "later", use_and_lock },
		{ "full", lock_and_fill },
	};

	alarm(watchdog_seconds() / 2);
	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
		if (!strcmp(name, roles[i].name)) {
			roles[i].fn();
			return 0;
		}
	return 2;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_process_stays_small),
		TEST(a_process_can_lock_its_memory),
		TEST(a_process_can_lock_its_memory_and_have_threads),
		TEST(a_process_can_lock_its_memory_later),
		TEST(no_more_memory_can_be_locked),
		TEST(arenas_grow),
		TEST(arenas_grow_in_several_threads),
		TEST(arenas_of_children_grow),
		TEST(strangers_are_left_alone),
		TEST(arenas_cannot_grow),
		TEST(arenas_grow_once_there_is_memory),
		TEST(a_child_does_without_what_was_being_added),
	};

	if (argc == 3 && !strcmp(argv[1], "--as"))
		return play(argv[2]);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
