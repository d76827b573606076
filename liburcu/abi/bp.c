/* SPDX-License-Identifier: MIT */
/* bp.c - liburcu-bp.so.8: a thread registers at its first section, perhaps in a signal handler, and is unregistered where it ends. */
#define _GNU_SOURCE
#include "words.h"

#include <urcu/pointer.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

QUIESCE_URCU_CALLS(bp)

#define F(name) urcu_bp_##name
#define FLAVOR_NAME "bp"
#define CHUNK_BYTES 65536u

/* Programs access only ctr. */
struct urcu_bp_reader {
	uint64_t ctr;
	struct urcu_bp_reader *next_free;
	struct quiesce_urcu_record record;
} __attribute__((aligned(URCU_LINE)));

extern QUIESCE_DATA int urcu_bp_has_sys_membarrier;
int urcu_bp_has_sys_membarrier;
QUIESCE_DATA struct urcu_gp urcu_bp_gp = { .ctr = 1 };
QUIESCE_DATA __thread struct urcu_bp_reader *urcu_bp_reader;

static struct quiesce_urcu_domain domain = {
	.call = "urcu_bp_synchronize_rcu",
	.kind = QUIESCE_URCU_LIGHT,
	.gp = &urcu_bp_gp.ctr, /* the unlock that programs have inlined wakes no waiter */
};

/* Taken with all signals blocked: a handler may register its thread, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct urcu_bp_reader *unused;
static pthread_key_t key;
static bool added;

/* ---- threads ---- */

/* The caller holds the lock. */
static void get_chunk(void)
{
	struct urcu_bp_reader *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (chunk == MAP_FAILED)
		urcu_die("urcu_bp_register", errno);
	for (size_t i = 0; i < CHUNK_BYTES / sizeof *chunk; i++) {
		chunk[i].next_free = unused;
		unused = &chunk[i];
	}
}

static void unregister(void *of_thread)
{
	struct urcu_bp_reader *self = of_thread;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	urcu_bp_reader = NULL;
	quiesce_urcu_record_remove(&domain, &self->record);
	self->ctr = 0;
	pthread_mutex_lock(&lock);
	self->next_free = unused;
	unused = self;
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	int err;

	if (added)
		return;
	added = true;
	err = pthread_key_create(&key, unregister);
	if (err)
		urcu_die("urcu_bp_register", err);
	urcu_bp_has_sys_membarrier = quiesce_urcu_domain_add(&domain);
}

extern QUIESCE_DATA void urcu_bp_register(void);
void urcu_bp_register(void)
{
	struct urcu_bp_reader *self;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (urcu_bp_reader) /* a signal handler has registered the thread meanwhile */
		goto out;
	pthread_mutex_lock(&lock);
	begin(); /* constructors of the program may come before this library's */
	if (!unused)
		get_chunk();
	self = unused;
	unused = self->next_free;
	pthread_mutex_unlock(&lock);
	self->record.word = &self->ctr;
	quiesce_urcu_record_add(&domain, &self->record);
	err = pthread_setspecific(key, self);
	if (err)
		urcu_die("urcu_bp_register", err);
	urcu_bp_reader = self;
out:
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void urcu_bp_init(void) { begin(); }

void urcu_bp_register_thread(void)
{
	if (!urcu_bp_reader)
		urcu_bp_register();
}

void urcu_bp_unregister_thread(void) {}

/* ---- readers ---- */

QUIESCE_DATA void urcu_bp_read_lock(void);
QUIESCE_DATA void urcu_bp_read_unlock(void);
QUIESCE_DATA int urcu_bp_read_ongoing(void);

void urcu_bp_read_lock(void)
{
	if (quiesce_unlikely(!urcu_bp_reader))
		urcu_bp_register();
	quiesce__urcu_lock(&urcu_bp_reader->ctr, &urcu_bp_gp.ctr, urcu_bp_has_sys_membarrier != 0);
}

void urcu_bp_read_unlock(void) { (void)quiesce__urcu_unlock(&urcu_bp_reader->ctr, urcu_bp_has_sys_membarrier != 0); }
int urcu_bp_read_ongoing(void) { return urcu_bp_reader && (urcu_bp_reader->ctr & QUIESCE_URCU_NESTING) != 0; }

/* An updater holds locks that a registration needs: it registers first, so that
 * a handler that reads finds its thread registered. */
#define F_BEFORE_UPDATE urcu_bp_register_thread

void urcu_bp_synchronize_rcu(void)
{
	F_BEFORE_UPDATE();
	if (urcu_bp_read_ongoing())
		urcu_die("urcu_bp_synchronize_rcu", EDEADLK);
	quiesce_urcu_wait(&domain);
}

/* ---- fork: the library handles it; only the lock of this file has to be free in a child ---- */

static sigset_t before_fork; /* guarded by the lock */

/* Runs before the library's own handler, which was registered first: no
 * signal handler registers while the locks are held. */
static void take_lock(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&lock);
	before_fork = old;
}

static void give_lock(void)
{
	sigset_t old = before_fork;

	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(take_lock, give_lock, give_lock);
}

extern QUIESCE_DATA void urcu_bp_before_fork(void);
extern QUIESCE_DATA void urcu_bp_after_fork_parent(void);
extern QUIESCE_DATA void urcu_bp_after_fork_child(void);

void urcu_bp_before_fork(void) {}
void urcu_bp_after_fork_parent(void) {}
void urcu_bp_after_fork_child(void) {}

static void nothing(void) {}

#define F_QUIESCENT_STATE nothing
#define F_THREAD_OFFLINE nothing
#define F_THREAD_ONLINE nothing
#include "domain.h"

/* ---- pointers, under the names of this flavour ---- */

extern QUIESCE_DATA void *urcu_bp_dereference_sym(void *p);
extern QUIESCE_DATA void *urcu_bp_set_pointer_sym(void **p, void *v);
extern QUIESCE_DATA void *urcu_bp_xchg_pointer_sym(void **p, void *v);
extern QUIESCE_DATA void *urcu_bp_cmpxchg_pointer_sym(void **p, void *old, void *v);

void *urcu_bp_dereference_sym(void *p) { return rcu_dereference_sym(p); }
void *urcu_bp_set_pointer_sym(void **p, void *v) { return rcu_set_pointer_sym(p, v); }
void *urcu_bp_xchg_pointer_sym(void **p, void *v) { return rcu_xchg_pointer_sym(p, v); }
void *urcu_bp_cmpxchg_pointer_sym(void **p, void *old, void *v) { return rcu_cmpxchg_pointer_sym(p, old, v); }
