/* SPDX-License-Identifier: MIT */
/* test_lfstack.cpp - quiesce::lfstack: types, ranges, threads that pop inside sections and retire. */
#include <quiesce/ds/lfstack.hpp>
#include <quiesce/rcu.hpp>

#include "tap.hpp"

#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

struct job : quiesce::rcu_obj_base<job> {
	explicit job(int n) : number(n) {}
	~job() { number = -1; }
	int number;
	lfs_node node;
};

using jobs = quiesce::lfstack<&job::node>;

static_assert(std::is_nothrow_default_constructible_v<jobs> && !std::is_copy_constructible_v<jobs> && !std::is_copy_assignable_v<jobs>);
static_assert(std::input_iterator<std::ranges::iterator_t<jobs::range>> && std::ranges::view<jobs::range>);
static_assert(sizeof(jobs) == sizeof(void *) && noexcept(std::declval<jobs &>().pop()) && noexcept(std::declval<jobs &>().pop_all()));

static constinit jobs early;

static void newest_first()
{
	job j[3] = { job(1), job(2), job(3) };
	int last = 3;

	CHECK(early.empty() && !early.pop() && early.pop_all().empty());
	CHECK(!early.push(j[0]) && early.push(j[1]) && early.push(j[2]));
	CHECK(early.pop() == &j[2] && !early.empty() && early.native_handle()->head);
	for (job &each : early.pop_all()) {
		CHECK(each.number == --last);
		early.push(each);
	}
	CHECK(last == 1 && early.pop() == &j[0] && early.pop() == &j[1] && early.empty());
}

static void threads_pop_in_sections()
{
	constexpr int each = 20000, pushers = 2;
	jobs s;
	std::vector<std::thread> threads;
	long sum = 0, nr = 0, wrong = 0;

	auto pop = [&] {
		while (quiesce_load_relaxed(&nr) < pushers * each) {
			job *mine;
			{
				std::scoped_lock section(quiesce::rcu_default_domain());
				mine = s.pop();
			}
			if (!mine)
				continue;
			if (mine->number < 1)
				quiesce_fetch_add_relaxed(&wrong, 1L);
			quiesce_fetch_add_relaxed(&sum, long(mine->number));
			quiesce_fetch_add_relaxed(&nr, 1L);
			mine->retire();
		}
	};
	for (int t = 0; t < pushers; t++)
		threads.emplace_back([&] {
			for (int n = 1; n <= each; n++)
				s.push(*new job(n));
		});
	threads.emplace_back(pop);
	pop();
	for (std::thread &t : threads)
		t.join();
	CHECK(wrong == 0 && nr == pushers * each && sum == long(pushers) * each * (each + 1) / 2 && s.empty());
	quiesce::rcu_barrier();
}

int main()
{
	return run_tests({ TEST(newest_first), TEST(threads_pop_in_sections) });
}
