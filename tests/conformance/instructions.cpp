/* SPDX-License-Identifier: MIT */
/* raw, whole file: C++ programs publish through std::atomic. */
/* instructions.cpp - equal functions in C++ and in C, whose instructions instructions.py counts.  "planted" ones must be refused. */
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.hpp>
#include <quiesce/shazptr.hpp>

#include <mutex>
#include <utility>

struct config : quiesce::hazard_pointer_obj_base<config> {
	int limit;
};
struct apart : std::mutex, quiesce::hazard_pointer_obj_base<apart> { /* the base is not the first */
	int limit;
};

struct list_node : quiesce::hazard_pointer_obj_base<list_node> {
	std::atomic<list_node *> next;
	long key;
};
struct c_node {
	hazptr_head hazptr;
	c_node *next;
	long key;
};

extern "C" {

int cpp_taken(const std::atomic<config *> &src)
{
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	return h.protect(src)->limit;
}

int c_taken(config **src)
{
	hazptr_t *slot = hazptr_alloc(nullptr);

	if (!slot)
		return 0;
	config *p = hazptr_protect(slot, src);
	int limit = p->limit;

	hazptr_free(nullptr, slot);
	return limit;
}

int cpp_in_hand(quiesce::hazard_pointer &h, const std::atomic<config *> &src)
{
	int limit = h.protect(src)->limit;

	h.reset_protection();
	return limit;
}

int c_in_hand(hazptr_t **slot, config **src)
{
	config *p = hazptr_protect(*slot, src);
	int limit = p->limit;

	hazptr_clear(*slot);
	return limit;
}

int cpp_rcu(const std::atomic<config *> &src)
{
	std::scoped_lock section(quiesce::rcu_default_domain());
	return src.load(std::memory_order_acquire)->limit;
}

int c_rcu(config **src)
{
	rcu_read_lock();
	config *p = rcu_dereference(*src);
	int limit = p->limit;

	rcu_read_unlock();
	return limit;
}

int cpp_shazptr(const std::atomic<config *> &src)
{
	quiesce::shazptr guard(src);
	return guard->limit;
}

int c_shazptr(config **src)
{
	struct shazptr_guard guard = shazptr_protect(src);
	int limit = static_cast<config *>(shazptr_ptr(guard))->limit;

	shazptr_clear(guard);
	return limit;
}

int cpp_offset(quiesce::hazard_pointer &h, const std::atomic<apart *> &src)
{
	int limit = h.protect(src)->limit;

	h.reset_protection();
	return limit;
}

/* Hand over hand, with three slots that are elements of an array. */
list_node *cpp_walk(quiesce::hazard_pointer_array<3> &h, std::atomic<list_node *> &head, long key)
{
	quiesce::hazard_pointer_view here = h[0].view(), ahead = h[1].view(), behind = h[2].view();
	std::atomic<list_node *> *where = &head;
	list_node *node = here.protect(head), *next;

	while (node) {
		next = ahead.protect(node->next);
		if (where->load(std::memory_order_acquire) != node)
			return nullptr;
		if (node->key >= key)
			return node;
		where = &node->next;
		node = next;
		std::swap(behind, here);
		std::swap(here, ahead);
	}
	return nullptr;
}

c_node *c_walk(hazptr_t *const *slot, c_node **head, long key)
{
	hazptr_t *here = slot[0], *ahead = slot[1], *behind = slot[2];
	c_node **where = head, *node = hazptr_protect(here, where), *next;

	while (node) {
		next = hazptr_protect(ahead, &node->next);
		if (rcu_dereference(*where) != node)
			return nullptr;
		if (node->key >= key)
			return node;
		where = &node->next;
		node = next;
		std::swap(behind, here);
		std::swap(here, ahead);
	}
	return nullptr;
}

int cpp_planted(const std::atomic<config *> &src)
{
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	config *p = h.protect(src);
	quiesce_fence_full(HP1);
	return p->limit;
}

int cpp_spilled(const std::atomic<config *> &src)
{
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	quiesce::hazard_pointer *volatile escaped = &h;
	return escaped->protect(src)->limit;
}

} // extern "C"
