/* SPDX-License-Identifier: MIT */
/* test_value_queue.cpp - value_queue against std::deque, by one thread: values of all sizes, one by one and many at once, bounded
 * and unbounded, closed, destroyed with what is inside, and without memory for further rings.
 */
#include "property.hpp"
#include "refuse.hpp"

#include <quiesce/ds/value_queue.h>
#include <quiesce/rcu.h>

#include <algorithm>
#include <cerrno>
#include <deque>

namespace {

enum verbs { REFUSE, PUSH, PUSH_TIMED, PUSH_MANY, PUSH_MANY_TIMED, POP, POP_TIMED, POP_MANY, POP_MANY_TIMED, ROUNDS, CLOSE, AGAIN };
const std::vector<properties::verb> queue_verbs = {
	{ "refuse", 3 },      { "push", 8 },     { "push_timed", 2 },     { "push_many", 5 },
	{ "push_many_timed", 3 }, { "pop", 7 },  { "pop_timed", 2 },      { "pop_many", 5 },
	{ "pop_many_timed", 3 },  { "rounds", 3 }, { "close", 1 },        { "again", 2 },
};

struct {
	int refused, full, empty, closed, grown;
} reached;

/* ---- queues that are wrong ---- */

struct right {
	static int push(value_queue *q, const void *value) { return value_queue_push_try(q, value); }
	static long pop_many(value_queue *q, void *ret, std::size_t max) { return value_queue_pop_many(q, ret, max); }
};
/* A fault: the second value is forgotten. */
struct forgets : right {
	static int push(value_queue *q, const void *value) { return value_queue_count(q) == 1 ? 0 : value_queue_push_try(q, value); }
};
/* A fault: one element more is taken than is returned, if there are several. */
struct one_more : right {
	static long pop_many(value_queue *q, void *ret, std::size_t max)
	{
		long got = value_queue_pop_many(q, ret, max);

		return got > 1 ? got - 1 : got;
	}
};

/* ---- the queue and its model ---- */

/* The model has numbers, of which the bytes of the values are made. */
template<std::size_t size, std::size_t capacity, class Queue> class pair : public properties::subject {
	using bytes = std::vector<unsigned char>;
	static constexpr std::size_t most = size > 256 ? 70 : 700; /* values at once */

public:
	pair() { begin(); }
	~pair() override
	{
		value_queue_destroy(&queue, nullptr, nullptr);
		rcu_barrier();
	}

	void apply(const properties::op &o) override
	{
		if (o.verb == REFUSE) {
			refuse::arm(o.a % 4, o.b & 1);
			return;
		}
		perform(o.verb, o.a, o.b);
		refuse::disarm();
	}

	void compare(bool last) override
	{
		SAME(value_queue_count(&queue) == model.size() && value_queue_is_closed(&queue) == closed);
		if (last)
			again();
	}

private:
	void perform(unsigned verb, std::uint32_t a, std::uint32_t b)
	{
		switch (verb) {
		case PUSH: push(Queue::push, -EAGAIN); break;
		case PUSH_TIMED: push([](value_queue *q, const void *v) { return value_queue_push_timeout(q, v, 1); }, -ETIMEDOUT); break;
		case PUSH_MANY: push_many(a % (b % 4 ? 20 : most), 0); break;
		case PUSH_MANY_TIMED: push_many(a % (b % 4 ? 20 : most), 1); break;
		case POP: pop(0); break;
		case POP_TIMED: pop(1); break;
		case POP_MANY: pop_many(a % (b % 4 ? 20 : most), 0); break;
		case POP_MANY_TIMED: pop_many(a % (b % 4 ? 20 : most), 1); break;
		case ROUNDS: rounds(1 + a % 5, 1 + b % 200); break;
		case CLOSE: close(b); break;
		case AGAIN: again(); break;
		default: break;
		}
	}

	void begin()
	{
		SAME(value_queue_init(&queue, size, capacity) == 0);
		room = 1;
		while (room < capacity)
			room *= 2;
	}

	static void write(unsigned char *value, std::uint32_t number)
	{
		for (std::size_t i = 0; i < size; i++)
			value[i] = static_cast<unsigned char>((number * 2654435761u >> (8 * (i % 4))) + i);
	}

	/* The oldest values were popped into @values. */
	void popped(const bytes &values, std::size_t nr)
	{
		bytes expected(size);

		for (std::size_t i = 0; i < nr; i++) {
			SAME(!model.empty());
			write(expected.data(), model.front());
			SAME(std::equal(expected.begin(), expected.end(), values.begin() + static_cast<long>(i * size)));
			model.pop_front();
		}
		SAME(values[nr * size] == 0xee); /* nothing was written behind them */
	}

	/* Whether a push may return @err, and @full if there is no space. */
	void failed(long err, int full)
	{
		if (err == -ENOMEM) {
			SAME(refuse::count() > 0 && !capacity && !closed);
			reached.refused++;
		} else if (closed) {
			SAME(err == -EPIPE);
			reached.closed++;
		} else {
			SAME(err == full && capacity && model.size() == room);
			reached.full++;
		}
	}

	void push(int (*call)(value_queue *q, const void *value), int full)
	{
		bytes value(size);
		const void *ring = queue.push_ring;

		write(value.data(), ++number);
		int err = call(&queue, value.data());
		if (err)
			return failed(err, full);
		SAME(!closed && (!capacity || model.size() < room));
		model.push_back(number);
		reached.grown += queue.push_ring != ring;
	}

	void push_many(std::size_t nr, std::uint64_t timeout)
	{
		bytes values(nr * size + 1);

		for (std::size_t i = 0; i < nr; i++)
			write(values.data() + i * size, number + 1 + static_cast<std::uint32_t>(i));
		long got = timeout ? value_queue_push_many_timeout(&queue, values.data(), nr, timeout) :
				     value_queue_push_many(&queue, values.data(), nr);
		if (got < 0)
			return failed(got, timeout ? -ETIMEDOUT : -EAGAIN);
		SAME(nr == 0 || !closed);
		if (capacity)
			SAME(static_cast<std::size_t>(got) == std::min(nr, room - model.size()));
		else
			SAME(static_cast<std::size_t>(got) == nr || refuse::count() > 0);
		for (long i = 0; i < got; i++)
			model.push_back(++number);
	}

	void none(long err, std::uint64_t timeout)
	{
		SAME(model.empty() && err == (closed ? -EPIPE : timeout ? -ETIMEDOUT : -EAGAIN));
		reached.empty++;
	}

	void pop(std::uint64_t timeout)
	{
		bytes value(size + 1, 0xee);
		int err = timeout ? value_queue_pop_timeout(&queue, value.data(), timeout) : value_queue_pop_try(&queue, value.data());

		if (err)
			return none(err, timeout);
		popped(value, 1);
	}

	/* Those in one ring are taken at once, so in an unbounded queue it may be fewer than there are. */
	void pop_many(std::size_t nr, std::uint64_t timeout)
	{
		bytes values(nr * size + 1, 0xee);
		long got = timeout ? value_queue_pop_many_timeout(&queue, values.data(), nr, timeout) :
				     Queue::pop_many(&queue, values.data(), nr);

		if (got < 0)
			return none(got, timeout);
		SAME(static_cast<std::size_t>(got) <= nr && (got > 0 || nr == 0));
		if (capacity)
			SAME(static_cast<std::size_t>(got) == std::min(nr, model.size()));
		popped(values, static_cast<std::size_t>(got));
	}

	/* The same number in and out, which goes round the ring. */
	void rounds(std::size_t each, std::size_t nr)
	{
		for (std::size_t i = 0; i < nr; i++) {
			push_many(each, 0);
			for (std::size_t n = 0; n < each; n++)
				pop(0);
		}
	}

	void close(std::uint32_t b)
	{
		if (b % 4)
			return;
		value_queue_close(&queue);
		closed = true;
	}

	static void drop(void *value, void *arg)
	{
		auto *self = static_cast<pair *>(arg);
		auto *from = static_cast<unsigned char *>(value);
		bytes copy(from, from + size);

		copy.push_back(0xee);
		self->popped(copy, 1);
	}

	/* The queue ends with what is inside, and begins anew. */
	void again()
	{
		refuse::disarm();
		value_queue_destroy(&queue, drop, this);
		SAME(model.empty());
		closed = false;
		begin();
	}

	value_queue queue;
	std::deque<std::uint32_t> model;
	std::size_t room = 0;
	std::uint32_t number = 0;
	bool closed = false;
};

template<std::size_t size, std::size_t capacity, class Queue = right> properties::property of(const char *name)
{
	properties::property p{ name, queue_verbs, [] { return std::make_unique<pair<size, capacity, Queue>>(); } };

	p.unreached = [] {
		std::string why = !reached.empty ? "no queue was empty" : !reached.closed ? "no queue was closed" : "";

		if (capacity)
			why += reached.full ? "" : "no queue was full";
		else
			why += !reached.refused ? "no allocation was refused" : !reached.grown ? "no queue got a further ring" : "";
		if (why.empty())
			reached = {};
		return why;
	};
	return p;
}

} // namespace

int main()
{
	using properties::planted;

	return properties::run({ of<8, 0>("words, unbounded"), of<8, 64>("words, 64"), of<1, 1>("bytes, one"),
				 of<3, 0>("3 bytes, unbounded"), of<24, 7>("24 bytes, 8"), of<57, 0>("57 bytes, unbounded"),
				 of<300, 33>("300 bytes, 64"), of<4096, 0>("4096 bytes, unbounded"), of<4096, 5>("4096 bytes, 8"),
				 planted(of<8, 0, forgets>("a queue that forgets the second value is found, by two operations"), 2),
				 planted(of<8, 64, one_more>("a queue that returns too few is found, by two operations"), 2) });
}
