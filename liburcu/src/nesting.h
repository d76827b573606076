/* SPDX-License-Identifier: MIT */
/* nesting.h - a flavour that is an RCU of its own, whose readers nest and are registered.  No guard.
 *
 * Included with F(name) and
 *   FLAVOR_NAME     as in reports
 *   KIND            quiesce_urcu_kind
 *   GP, READER      words of the flavour, and of the thread: ctr, futex; ctr, record
 *   REGISTERED      the member of READER that is set while the thread is registered
 *   BEGUN(light)    called once; @light: readers may leave their fences out
 */

static struct quiesce_urcu_domain domain = {
	.call = "urcu_" FLAVOR_NAME "_synchronize_rcu",
	.kind = KIND,
	.gp = &GP.ctr,
	.futex = &GP.futex,
};

static bool added;

__attribute__((constructor)) static void begin(void)
{
	if (added)
		return;
	added = true; /* called by a constructor, before there are threads */
	BEGUN(quiesce_urcu_domain_add(&domain));
}

/* Constructors of the program may come before this library's. */
void F(init)(void) { begin(); }

void F(register_thread)(void)
{
	if (READER.REGISTERED)
		return;
	begin();
	READER.REGISTERED = 1;
	READER.record.word = &READER.ctr;
	quiesce_urcu_record_add(&domain, &READER.record);
}

void F(unregister_thread)(void)
{
	if (!READER.REGISTERED)
		return;
	READER.REGISTERED = 0;
	quiesce_urcu_record_remove(&domain, &READER.record);
}

void F(synchronize_rcu)(void)
{
	if (F(read_ongoing)())
		urcu_die("urcu_" FLAVOR_NAME "_synchronize_rcu", EDEADLK);
	quiesce_urcu_wait(&domain);
}
