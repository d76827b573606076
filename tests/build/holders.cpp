/* SPDX-License-Identifier: MIT */
/* raw, whole file: C++ programs publish through std::atomic. */
/* holders.cpp - hazard_pointers and objects that go from one part of a program to another; for guards.py.
 *
 * Compiled twice and linked: as the part with main() and as PART_TWO, which may be a plug-in.  Inline functions and
 * templates are in both.
 */
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.hpp>

#include <cstdio>

#define SHOWN __attribute__((visibility("default")))

struct SHOWN node : quiesce::hazard_pointer_obj_base<node> {
	int *ended;
	explicit node(int *e) : ended(e) {}
	~node() { ++*ended; }
};
struct SHOWN route : quiesce::rcu_obj_base<route> {
	int *ended;
	explicit route(int *e) : ended(e) {}
	~route() { ++*ended; }
};

SHOWN quiesce::hazard_pointer made_in_two(const std::atomic<node *> &src);
SHOWN void ended_in_two(quiesce::hazard_pointer h);
SHOWN void retired_in_two(node *object, route *other);
SHOWN quiesce::rcu_domain *domain_of_two();

#ifdef PART_TWO

quiesce::hazard_pointer made_in_two(const std::atomic<node *> &src)
{
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	(void)h.protect(src);
	return h;
}
void ended_in_two(quiesce::hazard_pointer) {}
void retired_in_two(node *object, route *other)
{
	object->retire();
	other->retire();
}
quiesce::rcu_domain *domain_of_two() { return &quiesce::rcu_default_domain(); }

#else

static int nr_wrong;

static void expect(bool ok, const char *what)
{
	if (!ok)
		std::printf("wrong: %s\n", what);
	nr_wrong += !ok;
}

static void from_one_to_the_other()
{
	int ended = 0, routes = 0;
	std::atomic<node *> src(new node(&ended));
	quiesce::hazard_pointer h = made_in_two(src);

	retired_in_two(src.exchange(nullptr), new route(&routes));
	for (int i = 0; i < 5000; i++)
		(new node(&routes))->retire();
	expect(ended == 0, "protected by a hazard_pointer of the other part");
	ended_in_two(std::move(h));
	expect(h.empty(), "moved");
	quiesce::hazard_pointer_clean_up();
	quiesce::rcu_barrier();
	expect(ended == 1 && routes == 5001, "reclaimed");
}

int main()
{
	from_one_to_the_other();
	expect(domain_of_two() == &quiesce::rcu_default_domain(), "one domain");
	quiesce::rcu_default_domain().lock();
	domain_of_two()->unlock();
	quiesce::rcu_synchronize(*domain_of_two());
	std::printf("%d wrong\n", nr_wrong);
	return nr_wrong != 0;
}

#endif
