// SPDX-License-Identifier: MIT
/* work_queue.cpp - jobs that many threads hand to one thread, such as lines of a log or deferred work.
 *
 * Problem.  Threads that serve requests must not block when they hand a job over, and the worker sleeps while there
 *   is none.  At the end every job that was handed over has been done.
 * Without it.  A mutex around a std::deque makes a server thread wait for one that was preempted with the lock held.
 * Primitive.  wfcqueue: to put a job in is one exchange, which never waits.  Its return value says whether the queue
 *   was empty, so a producer wakes the worker only then.  One thread takes; where several do, lfqueue.h is the queue,
 *   and jobs are freed after a grace period of RCU.
 *
 *	c++ -std=c++20 work_queue.cpp $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/ds/wfcqueue.hpp>

#include <cstdio>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace {

struct job {
	unsigned producer, number;
	bool last = false; // the job that ends the worker
	wfcq_node node{};  // the queue needs no allocation
};

class worker {
public:
	explicit worker(unsigned producers) : next(producers), thread([this] { run(); }) {}

	// Any thread; it does not wait for the worker or for other producers.
	void submit(std::unique_ptr<job> j) noexcept
	{
		if (!queue.enqueue(*j.release()))
			something.release(); // it was empty, so the worker sleeps or is about to
	}

	// After the last submit() of every producer.  All jobs have been done when it returns.
	void finish()
	{
		auto end = std::make_unique<job>();

		end->last = true;
		submit(std::move(end)); // behind all others: the queue keeps the order
		thread.join();
	}

	unsigned long done = 0, out_of_order = 0; // the worker's, until it has been joined

private:
	void run()
	{
		for (;;) {
			something.acquire();
			while (job *taken = queue.dequeue()) {
				std::unique_ptr<job> j(taken); // the taker's at once: no grace period

				if (j->last)
					return;
				out_of_order += j->number != next[j->producer]++; // jobs of one producer keep their order
				done++;
			}
		}
	}

	quiesce::wfcqueue<&job::node> queue;
	std::counting_semaphore<> something{ 0 };
	std::vector<unsigned> next;
	std::thread thread; // last, as it uses all of the above
};

} // namespace

int main()
{
	constexpr unsigned producers = 3, jobs = 20000;
	worker log(producers);
	{
		std::vector<std::jthread> threads;

		for (unsigned p = 0; p < producers; p++)
			threads.emplace_back([&log, p] {
				for (unsigned i = 0; i < jobs; i++)
					log.submit(std::make_unique<job>(job{ .producer = p, .number = i }));
			});
	} // joins the producers
	log.finish();
	std::printf("work_queue: %lu of %u jobs done, %lu out of order\n", log.done, producers * jobs, log.out_of_order);
	return log.done != producers * jobs || log.out_of_order;
}
