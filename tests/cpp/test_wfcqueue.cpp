/* SPDX-License-Identifier: MIT */
/* test_wfcqueue.cpp - quiesce::wfcqueue: types, order, states, range-for, many producers and one taker. */
#include <quiesce/ds/wfcqueue.hpp>

#include "tap.hpp"

#include <array>
#include <iterator>
#include <memory>
#include <semaphore>
#include <thread>
#include <type_traits>
#include <vector>

struct message {
	virtual ~message() = default;
	int from = 0, number = 0;
	wfcq_node node{};
};

struct letter : message {
	int stamp = 7;
};

using mailbox = quiesce::wfcqueue<&message::node>;

/* ---- what the compiler knows ---- */

static_assert(sizeof(mailbox) == 2 * QUIESCE_CACHELINE && alignof(mailbox) == QUIESCE_CACHELINE);
static_assert(std::is_nothrow_default_constructible_v<mailbox>);
static_assert(!std::is_copy_constructible_v<mailbox> && !std::is_move_constructible_v<mailbox>);
static_assert(!std::is_copy_assignable_v<mailbox> && !std::is_move_assignable_v<mailbox>);
static_assert(noexcept(std::declval<mailbox &>().enqueue(std::declval<message &>())) && noexcept(std::declval<mailbox &>().dequeue()));
static_assert(std::is_same_v<decltype(std::declval<mailbox &>().dequeue()), message *>);
static_assert(std::input_iterator<mailbox::iterator> && std::sentinel_for<std::default_sentinel_t, mailbox::iterator>);

/* The object is usable before any constructor runs. */
static message first;
static const bool used_early = [] {
	extern mailbox early;

	return early.empty() && !early.enqueue(first) && !early.empty();
}();
constinit mailbox early;

/* ---- one thread ---- */

static void first_in_first_out()
{
	std::array<message, 5> m;
	mailbox box;

	CHECK(used_early && early.dequeue() == &first && early.empty());
	CHECK(box.empty() && !box.dequeue() && box.try_dequeue() == nullptr && !box.dequeue_with_state().object);
	for (auto &one : m)
		CHECK(box.enqueue(one) == (&one != &m[0]));
	CHECK(box.dequeue() == &m[0] && *box.try_dequeue() == &m[1]);
	CHECK(box.dequeue_with_state().object == &m[2] && !box.try_dequeue_with_state()->last);
	auto [object, last] = box.dequeue_with_state();
	CHECK(object == &m[4] && last && box.empty());
	CHECK(!box.enqueue(m[3]) && box.try_dequeue_with_state()->last);
}

/* The node of a derived class has another offset than that of its base would have. */
static void derived_objects()
{
	quiesce::wfcqueue<&message::node, letter> letters;
	letter a, b;

	letters.enqueue(a);
	letters.enqueue(b);
	int n = 0;
	for (letter &l : letters)
		CHECK(l.stamp == 7 && &l == (n++ ? &b : &a));
	CHECK(n == 2 && letters.begin() != letters.end() && letters.begin()->stamp == 7);
	auto i = letters.begin();
	CHECK(&*i++ == &a && &*i == &b && ++i == letters.end());
	CHECK(letters.dequeue() == &a && letters.dequeue() == &b && letters.begin() == letters.end());
}

static void moved()
{
	std::array<message, 4> m;
	mailbox from, to;

	CHECK(to.splice(from) == WFCQ_RET_SRC_EMPTY && to.try_splice(from) == WFCQ_RET_SRC_EMPTY);
	from.enqueue(m[0]);
	from.enqueue(m[1]);
	CHECK(to.splice(from) == WFCQ_RET_DEST_EMPTY && from.empty());
	from.enqueue(m[2]);
	from.enqueue(m[3]);
	CHECK(to.try_splice(from) == WFCQ_RET_DEST_NON_EMPTY && from.empty());
	for (auto &one : m)
		CHECK(to.dequeue() == &one);
	CHECK(to.empty());
}

/* Act as an enqueuer that is between its two steps. */
static void would_block()
{
	message m;
	mailbox box, other;

	box.native_tail()->p = &m.node;
	CHECK(!box.empty() && !box.try_dequeue() && !box.try_dequeue_with_state());
	CHECK(other.try_splice(box) == WFCQ_RET_WOULDBLOCK);
	box.native_head()->node.next = &m.node;
	CHECK(box.dequeue() == &m && box.empty());
}

/* ---- threads ---- */

static void many_put_in_one_takes()
{
	constexpr int nr_threads = 3, nr_each = 20000;
	std::counting_semaphore<> something(0);
	std::array<int, nr_threads> next{};
	std::vector<std::thread> threads;
	mailbox box;
	int wrong = 0;

	for (int t = 0; t < nr_threads; t++)
		threads.emplace_back([&, t] {
			for (int i = 0; i < nr_each; i++) {
				auto m = std::make_unique<message>();

				m->from = t;
				m->number = i;
				if (!box.enqueue(*m.release()))
					something.release();
			}
		});
	for (int taken = 0; taken < nr_threads * nr_each;) {
		something.acquire();
		while (message *m = box.dequeue()) {
			wrong += m->number != next[static_cast<size_t>(m->from)]++;
			delete m;
			taken++;
		}
	}
	for (auto &t : threads)
		t.join();
	CHECK(wrong == 0 && box.empty());
}

int main()
{
	return run_tests({
		TEST(first_in_first_out), TEST(derived_objects), TEST(moved), TEST(would_block), TEST(many_put_in_one_takes),
	});
}
