// SPDX-License-Identifier: MIT
/* schema.cpp - a lock that is read by every transaction and written hardly ever.
 *
 * Problem.  Each transaction relies on the schema of a table from its begin to its end.  Now and then a statement
 *   adds a column: no transaction may be under way then, and none may see the column half added.
 * Without it.  std::shared_mutex is correct, but each transaction writes the lock's cache line twice, so readers on
 *   several CPUs wait for that line; and readers that come back to back may starve the writer.
 *   RCU does not fit: a transaction must not go on with an old schema after the statement has returned.
 * Primitive.  percpu_rwsem, as quiesce::percpu_shared_mutex for the guards of the standard library.  Readers count in
 *   words of their CPU; a writer waits for those inside and makes others queue behind it.
 *
 *	c++ -std=c++20 schema.cpp $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/percpu_rwsem.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

class table {
public:
	// One row by the schema in force.  False: the row and the schema do not fit together.
	bool transaction()
	{
		std::shared_lock reading(lock); // may sleep while it is held; a thread takes it once, not again inside
		std::vector<std::string> row;

		for (const std::string &name : names)
			row.push_back(name + "=0");
		return row.size() == types.size();
	}

	void add_column(const std::string &name, const std::string &type)
	{
		std::unique_lock writing(lock);

		names.push_back(name);
		types.push_back(type); // if this throws both vectors are as before
	}

	// False: transactions did not end in time, and nothing is changed.
	bool drop_column(std::chrono::milliseconds timeout)
	{
		std::unique_lock writing(lock, timeout);

		if (!writing || names.size() < 2)
			return false;
		names.pop_back();
		types.pop_back();
		return true;
	}

private:
	quiesce::percpu_shared_mutex lock;
	std::vector<std::string> names{ "id" }, types{ "integer" };
};

} // namespace

int main()
{
	using namespace std::chrono_literals;
	std::atomic<unsigned long> transactions{ 0 }, wrong{ 0 };
	std::atomic<bool> stop{ false };
	int changes = 0;
	table orders;
	{
		std::vector<std::jthread> threads;

		for (int i = 0; i < 3; i++)
			threads.emplace_back([&] {
				do {
					wrong += !orders.transaction();
					++transactions;
				} while (!stop);
			});
		for (int i = 0; i < 20; i++, changes++) {
			orders.add_column("c" + std::to_string(i), "text");
			std::this_thread::sleep_for(1ms);
			if (i % 2 && !orders.drop_column(10s))
				break;
		}
		stop = true;
	} // joins the readers; then the table and its lock may go
	std::printf("schema: %d changes, %lu transactions, %lu wrong\n", changes, +transactions, +wrong);
	return changes != 20 || !transactions || wrong;
}
