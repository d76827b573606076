/* SPDX-License-Identifier: MIT */
/* exhausted.cpp - make_hazard_pointer() and batches when no slot is left; for quiesce only.
 *
 * This program takes the library's place: it defines the functions that inline code calls, and gives out as many slots as it likes.
 */
#include <quiesce/hazptr.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

static hazptr_slot slots[64];
static unsigned left, taken, failures, checks;

extern "C" {
__thread struct quiesce_tls_v1 quiesce_tls_v1;
struct quiesce_shazptr_v1 quiesce_shazptr_v1 = { 1, 0, 0, 0, nullptr, QUIESCE_HAZPTR_FULL, {} }; /* no fast path is taken */

QUIESCE_API hazptr_t *quiesce__hazptr_alloc_slow(uint32_t, struct hazptr_context *)
{
	if (!left)
		return nullptr;
	left--;
	taken++;
	for (auto &slot : slots)
		if (slot.value == QUIESCE_HAZPTR_FREE) {
			slot.value = 0;
			return &slot;
		}
	return nullptr;
}

QUIESCE_API void quiesce__hazptr_free_slow(hazptr_t *slot)
{
	taken--;
	slot->value = QUIESCE_HAZPTR_FREE;
}

QUIESCE_API void quiesce__hazptr_set_slow(hazptr_t *slot, uintptr_t value) { slot->value = value; }

QUIESCE_API void quiesce__hazptr_set_saving() { std::abort(); } /* no waiter waits */

QUIESCE_API void *quiesce__hazptr_protect_slow(hazptr_t *, void **, size_t, uintptr_t) { return nullptr; }

QUIESCE_API hazptr_t *quiesce__hazptr_alloc_array_slow(uint32_t, struct hazptr_context *, size_t) { return nullptr; }
}

#define CHECK(...) (checks++, (__VA_ARGS__) ? (void)0 : (void)(failures++, std::printf("# line %d: %s\n", __LINE__, #__VA_ARGS__)))

struct node : quiesce::hazard_pointer_obj_base<node> {};

static bool batch_throws(std::vector<quiesce::hazard_pointer> &batch)
{
	try {
		quiesce::make_hazard_pointer_batch(batch);
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static void one()
{
	bool thrown = false;

	left = 1;
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	CHECK(!h.empty() && taken == 1);
	try {
		h = quiesce::make_hazard_pointer();
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	CHECK(thrown && !h.empty() && taken == 1);
}

/* Make a batch of five elements, of which the second is owned before, when at most @nr more slots are free. */
static void batch(unsigned nr)
{
	std::vector<quiesce::hazard_pointer> all(5);
	static node object;

	left = 1;
	all[1] = quiesce::make_hazard_pointer();
	all[1].reset_protection(&object);
	left = nr;
	bool thrown = batch_throws(all);
	CHECK(thrown == (nr < 4));
	CHECK(taken == (thrown ? 1 : 5));
	for (std::size_t i = 0; i < all.size(); i++)
		CHECK(all[i].empty() == (thrown && i != 1));
	unsigned protecting = 0;
	for (auto &slot : slots)
		protecting += slot.value != 0 && slot.value != QUIESCE_HAZPTR_FREE;
	CHECK(protecting == 1);
	left = 100;
	CHECK(!batch_throws(all) && taken == 5);
	quiesce::clear_hazard_pointer_batch(all);
	CHECK(taken == 0);
}

int main()
{
	for (auto &slot : slots)
		slot.value = QUIESCE_HAZPTR_FREE;
	one();
	CHECK(taken == 0);
	for (unsigned nr = 0; nr <= 4; nr++)
		batch(nr);
	std::printf("%sok 1 - bad_alloc, and no effects (%u checks)\n1..1\n", failures ? "not " : "", checks);
	return failures != 0;
}
