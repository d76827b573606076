/* SPDX-License-Identifier: MIT */
/* test_value_queue.cpp - quiesce::bounded_queue and unbounded_queue: types, results, objects in place, many threads. */
#include <quiesce/ds/value_queue.hpp>
#include <quiesce/rcu.hpp>

#include "tap.hpp"

#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using quiesce::conqueue_errc;
using words = quiesce::bounded_queue<long>;
using boxes = quiesce::unbounded_queue<std::unique_ptr<int>>;
using texts = quiesce::unbounded_queue<std::string>;

static_assert(!std::is_copy_constructible_v<words> && !std::is_move_constructible_v<words>);
static_assert(!std::is_copy_assignable_v<words> && !std::is_move_assignable_v<words>);
static_assert(std::is_same_v<words::value_type, long>);
static_assert(noexcept(std::declval<boxes &>().push(std::unique_ptr<int>())) && noexcept(std::declval<boxes &>().pop()));
static_assert(!noexcept(std::declval<texts &>().push(std::declval<const std::string &>())));

/* emplace() takes what a constructor takes, and does not cast. */
template <class Queue, class Arg, class = void> constexpr bool emplaces = false;
template <class Queue, class Arg>
constexpr bool emplaces<Queue, Arg, std::void_t<decltype(std::declval<Queue &>().emplace(std::declval<Arg>()))>> = true;
struct base {};
struct derived : base {};
enum class colour { red };
static_assert(emplaces<words, int> && emplaces<boxes, int *> && emplaces<texts, const char *>);
static_assert(emplaces<quiesce::bounded_queue<base *>, derived *> && !emplaces<quiesce::bounded_queue<derived *>, base *>);
static_assert(!emplaces<quiesce::bounded_queue<int *>, long> && !emplaces<words, int *>);
static_assert(!emplaces<quiesce::bounded_queue<colour>, int> && emplaces<quiesce::bounded_queue<colour>, colour>);

/* Arrays of bytes take and give what other iterators do: no copies of an object that only moves, and no casts. */
template <class Queue, class In, class = void> constexpr bool takes_many = false;
template <class Queue, class In>
constexpr bool takes_many<Queue, In, std::void_t<decltype(std::declval<Queue &>().push_many(std::declval<In>(), 1))>> = true;
template <class Queue, class Out, class = void> constexpr bool gives_many = false;
template <class Queue, class Out>
constexpr bool gives_many<Queue, Out, std::void_t<decltype(std::declval<Queue &>().pop_many(std::declval<Out>(), 1))>> = true;
struct ticket {
	int number;

	explicit ticket(int n) : number(n) {}
	ticket(ticket &&) = default;
	ticket &operator=(ticket &&) = default;
};
struct fixed {
	const int number;
};
using tickets = quiesce::bounded_queue<ticket>;
static_assert(std::is_trivially_copyable_v<ticket> && !std::is_copy_constructible_v<ticket>);
static_assert(!takes_many<tickets, ticket *> && !takes_many<tickets, std::vector<ticket>::iterator>);
static_assert(takes_many<tickets, std::move_iterator<ticket *>> && gives_many<tickets, ticket *>);
static_assert(takes_many<words, const long *> && takes_many<words, std::vector<bool>::iterator> && !takes_many<words, int **>);
static_assert(!takes_many<quiesce::bounded_queue<int *>, long *> && !takes_many<quiesce::bounded_queue<colour>, int *>);
static_assert(gives_many<words, long *> && !gives_many<words, const long *> && gives_many<words, std::vector<long>::iterator>);
static_assert(gives_many<texts, std::back_insert_iterator<std::vector<std::string>>> && !gives_many<texts, const std::string *>);
static_assert(takes_many<quiesce::bounded_queue<fixed>, fixed *> && !gives_many<quiesce::bounded_queue<fixed>, fixed *>);

/* An object that knows its address, and is counted. */
struct placed {
	static int alive;
	placed *self;
	int number;

	explicit placed(int n) noexcept : self(this), number(n) { ++alive; }
	placed(placed &&from) noexcept : self(this), number(from.self == &from ? from.number : -1) { ++alive; }
	~placed()
	{
		--alive;
		self = nullptr;
	}
};
int placed::alive; /* these objects have one thread */

static void first_in_first_out()
{
	words queue(4);
	conqueue_errc result = conqueue_errc::closed;

	CHECK(!queue.try_pop() && !queue.try_pop(result) && result == conqueue_errc::empty);
	for (long i = 1; i <= 4; i++)
		CHECK(queue.try_push(i) == conqueue_errc::success);
	CHECK(queue.try_push(5) == conqueue_errc::full && queue.size() == 4);
	CHECK(queue.push_for(5, std::chrono::milliseconds(1)) == conqueue_errc::timeout);
	for (long i = 1; i <= 4; i++)
		CHECK(queue.pop() == i);
	CHECK(!queue.pop_for(std::chrono::milliseconds(1), result) && result == conqueue_errc::timeout);
	CHECK(!queue.pop_for(std::chrono::seconds(-1), result) && result == conqueue_errc::empty);
	CHECK(queue.emplace() == conqueue_errc::success && queue.pop() == 0);
	CHECK(queue.emplace(7) == conqueue_errc::success && queue.pop_for(std::chrono::hours(3000000)) == 7);
	CHECK(!queue.is_closed());
	queue.push(8);
	queue.close();
	CHECK(queue.is_closed() && queue.push(9) == conqueue_errc::closed && queue.try_push(9) == conqueue_errc::closed);
	CHECK(queue.pop() == 8 && !queue.pop() && !queue.try_pop(result) && result == conqueue_errc::closed);
}

static void objects_that_only_move()
{
	boxes queue;
	std::unique_ptr<int> kept = std::make_unique<int>(1);

	for (int i = 0; i < 1000; i++)
		CHECK(queue.push(std::make_unique<int>(i)) == conqueue_errc::success);
	for (int i = 0; i < 900; i++) {
		std::optional<std::unique_ptr<int>> box = queue.pop();

		CHECK(box && **box == i);
	}
	queue.close();
	/* The rest is freed with the queue. */
	CHECK(queue.push(std::move(kept)) == conqueue_errc::closed && kept && *kept == 1);
}

static void objects_in_place()
{
	CHECK(placed::alive == 0);
	{
		quiesce::bounded_queue<placed> few(8);
		quiesce::unbounded_queue<placed> many;

		for (int i = 0; i < 100; i++) {
			CHECK(few.emplace(i) == conqueue_errc::success && many.emplace(i) == conqueue_errc::success);
			CHECK(few.pop()->number == i);
		}
		CHECK(placed::alive == 100);
		for (int i = 0; i < 90; i++)
			CHECK(many.try_pop()->number == i);
		CHECK(placed::alive == 10);
	}
	CHECK(placed::alive == 0);
}

static void copies()
{
	texts queue;
	const std::string text = "a text that is too long to be kept inside of the object", brief = "brief";

	for (int i = 0; i < 200; i++) {
		queue.push(text);
		queue.push(brief);
	}
	for (int i = 0; i < 200; i++)
		CHECK(*queue.pop() == text && *queue.pop() == brief);
}

static void many_at_once()
{
	const long values[] = { 1, 2, 3, 4, 5, 6 };
	long found[8];
	words few(4);

	CHECK(few.try_pop_many(found, 8) == 0 && few.try_push_many(values, 6) == 4 && few.try_push_many(values, 6) == 0);
	CHECK(few.push_many_for(values, 6, std::chrono::milliseconds(1)) == 0);
	CHECK(few.pop_many(found, 3) == 3 && found[0] == 1 && found[2] == 3);
	CHECK(few.push_many(values, 2) == 2);
	CHECK(few.pop_many_for(found, 8, std::chrono::seconds(1)) == 3 && found[0] == 4 && found[2] == 2);
	CHECK(few.pop_many_for(found, 8, std::chrono::milliseconds(1)) == 0);
	few.close();
	CHECK(few.push_many(values, 2) == 0 && few.pop_many(found, 8) == 0);
}

/* Bytes that only move are moved one by one. */
static void many_tickets()
{
	std::vector<ticket> four;
	ticket found[] = { ticket(0), ticket(0), ticket(0), ticket(0) };
	tickets few(4);

	for (int i = 1; i <= 4; i++)
		four.emplace_back(i);
	CHECK(few.push_many(std::make_move_iterator(four.data()), 4) == 4);
	CHECK(few.pop_many(found, 4) == 4 && found[0].number == 1 && found[3].number == 4);
}

static void many_objects()
{
	std::vector<std::unique_ptr<int>> boxed, unboxed;
	quiesce::bounded_queue<std::unique_ptr<int>> few(4);
	std::vector<std::string> copied = { "one", "two", "three" }, found(2);
	texts queue;

	for (int i = 0; i < 6; i++)
		boxed.push_back(std::make_unique<int>(i));
	CHECK(few.try_push_many(std::make_move_iterator(boxed.begin()), boxed.size()) == 4);
	CHECK(!boxed[3] && boxed[4] && *boxed[4] == 4); /* those that do not fit stay */
	CHECK(few.push_many_for(std::make_move_iterator(boxed.begin() + 4), 2, std::chrono::milliseconds(1)) == 0 && boxed[4]);
	CHECK(few.pop_many(std::back_inserter(unboxed), 6) == 4 && unboxed.size() == 4 && *unboxed[3] == 3);
	CHECK(queue.push_many(copied.begin(), 3) == 3 && copied[2] == "three");
	CHECK(queue.pop_many(found.begin(), 2) == 2 && found[1] == "two");
	CHECK(queue.try_pop_many(found.begin(), 2) == 1 && found[0] == "three");
}

/* A text whose copies and assignments throw when @left has come to 0; -1: never. */
struct fragile {
	static int left, alive;
	std::string text;

	explicit fragile(std::string t) : text(std::move(t)) { ++alive; }
	fragile(const fragile &from) : text((step(), from.text)) { ++alive; }
	fragile(fragile &&from) noexcept : text(std::move(from.text)) { ++alive; }
	fragile &operator=(fragile &&from)
	{
		step();
		text = std::move(from.text);
		return *this;
	}
	~fragile() { --alive; }

private:
	static void step()
	{
		if (left >= 0 && left-- == 0)
			throw std::runtime_error("no further");
	}
};
int fragile::left = -1, fragile::alive; /* these objects have one thread */

template <class Call> static bool throws(int left, Call call)
{
	bool thrown = false;

	fragile::left = left;
	try {
		call();
	} catch (const std::runtime_error &) {
		thrown = true;
	}
	fragile::left = -1;
	return thrown;
}

/* The objects before the one whose copy throws have been appended. */
template <class Queue> static void pushes_that_throw(Queue &queue, const std::vector<fragile> &five)
{
	CHECK(throws(2, [&] { queue.push_many(five.begin(), 5); }) && queue.size() == 2);
	CHECK(throws(0, [&] { queue.push_many(five.data(), 5); }) && queue.size() == 2);
	CHECK(throws(0, [&] { queue.push(five[4]); }) && queue.size() == 2);
	CHECK(queue.pop()->text == "0" && queue.pop()->text == "1" && !queue.try_pop() && five[2].text == "2");
}

/* Those before the one whose assignment throws are at their places, that one is lost, and the others are in the queue. */
template <class Queue> static void pops_that_throw(Queue &queue, const std::vector<fragile> &five)
{
	std::vector<fragile> found(4, fragile("none"));

	CHECK(queue.push_many(five.begin(), 4) == 4);
	CHECK(throws(1, [&] { static_cast<void>(queue.pop_many(found.begin(), 4)); }) && queue.size() == 2);
	CHECK(found[0].text == "0" && found[1].text == "none");
	CHECK(queue.try_push_many(five.begin(), 2) == 2 && queue.size() == 4); /* the cell of the lost one is free */
	CHECK(queue.pop_many(found.data(), 4) == 4 && found[0].text == "2" && found[1].text == "3" && found[3].text == "1");
}

static void exceptions()
{
	{
		quiesce::bounded_queue<fragile> few(4);
		quiesce::unbounded_queue<fragile> many;
		std::vector<fragile> five;

		five.reserve(5);
		for (int i = 0; i < 5; i++)
			five.emplace_back(std::to_string(i));
		pushes_that_throw(few, five);
		pushes_that_throw(many, five);
		pops_that_throw(few, five);
		pops_that_throw(many, five);
		CHECK(few.push(five[0]) == conqueue_errc::success && fragile::alive == 6);
	}
	CHECK(fragile::alive == 0);
}

static void too_many()
{
	bool thrown = false;

	try {
		words queue((std::size_t{ 1 } << 32) + 1);
	} catch (const std::invalid_argument &) {
		thrown = true;
	}
	CHECK(thrown);
}

template <class Queue> static long long sum_of(Queue &queue, int nr_threads, long nr_each)
{
	std::vector<std::thread> pushers, takers;
	long long sum = 0;

	for (int i = 0; i < nr_threads; i++) {
		pushers.emplace_back([&] {
			for (long k = 1; k <= nr_each; k++)
				queue.push(std::to_string(k));
		});
		takers.emplace_back([&] {
			while (std::optional<std::string> text = queue.pop())
				quiesce_fetch_add_relaxed(&sum, std::stoll(*text));
		});
	}
	for (std::thread &thread : pushers)
		thread.join();
	queue.close();
	for (std::thread &thread : takers)
		thread.join();
	return quiesce_load_relaxed(&sum);
}

static void many_threads()
{
	constexpr long nr_each = 20000;
	quiesce::bounded_queue<std::string> few(16);
	texts many;

	CHECK(sum_of(few, 3, nr_each) == 3 * nr_each * (nr_each + 1) / 2);
	CHECK(sum_of(many, 3, nr_each) == 3 * nr_each * (nr_each + 1) / 2);
}

int main()
{
	return run_tests({ TEST(first_in_first_out), TEST(objects_that_only_move), TEST(objects_in_place), TEST(copies), TEST(many_at_once),
			   TEST(many_tickets), TEST(many_objects), TEST(exceptions), TEST(too_many), TEST(many_threads) });
}
