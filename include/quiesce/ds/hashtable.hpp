/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashtable.hpp - hashtable.h with typed objects and keys, in namespace quiesce; for C++20.
 *
 *	struct user : quiesce::rcu_obj_base<user> {
 *		std::string name;
 *		int visits = 0;
 *	};
 *	quiesce::rcu_owning_hash_table<user, &user::name> users;
 *
 *	{                                                       // reader
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		if (user *u = users.find("ada"))                // no std::string is made of it
 *			use(u->visits);
 *		for (user &u : users)
 *			use(u.visits);
 *	}
 *
 *	users.insert_unique(std::make_unique<user>());          // updaters
 *	users.erase("ada");                                     // retires it
 *
 * The key is a member of the object, or what a function of it returns, such as a member function or a
 * lambda; it does not change while the object is in a table.  Lookups take anything that can be
 * compared with it: for a string key of any type, any type of string.
 * A rcu_hash_table does not own its objects: extract() an object that is to be reclaimed, and
 * retire it.  An object may be in several tables.  A rcu_owning_hash_table retires objects that
 * leave it by erase(), by insert_or_assign() of another, and by the end of the table: their class
 * has a rcu_obj_base.  For objects that are kept longer than a section: hashtable_hazptr.hpp.
 * Context, cost and order: as for hashtable.h; iterators and pointers are used in a section.
 * Exceptions: std::bad_alloc, and nothing has changed: the caller still owns the object.  The try_
 *   functions return an std::errc instead.  Hashes and comparisons do not throw; an exception of the
 *   function of update() passes, and nothing has changed.
 */
#if !defined(__cplusplus) || __cplusplus < 202002L
#error "quiesce/ds/hashtable.hpp needs C++20, whose concepts constrain its parameters; hashtable.h is for C and for C++11"
#elif !defined(QUIESCE_DS_HASHTABLE_HPP)
#define QUIESCE_DS_HASHTABLE_HPP

#include <quiesce/ds/hashtable.h>

#include <quiesce/detail/hash_key.hpp>
#include <quiesce/detail/hash_range.hpp>
#include <quiesce/detail/raise.hpp>
#include <quiesce/detail/thrown.hpp>
#include <quiesce/rcu.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace quiesce {

/** rcu_hash_table - a hashtable of T, found by the member or function Key. */
template<class T, auto Key, class Hash = rcu_hash, class Equal = rcu_hash_equal, class Drop = rcu_hash_keep>
	requires rcu_hash_key<Key, T>
class rcu_hash_table {
	using member = detail::hash_key_of<Key, T>;
	using query = detail::hash_query<member>;

	/* The argument of an insertion: an owning pointer if the table owns its objects. */
	static constexpr bool owning = !std::is_same_v<Drop, rcu_hash_keep>;
	static_assert(alignof(T) >= 2, "objects are at even addresses");
	static_assert(detail::hash_droppable<Drop, T>,
		      "a table that retires needs a T with one public base rcu_obj_base (of T, or with a virtual destructor), and no "
		      "hazard_pointer_obj_base: readers find objects in sections of RCU");
	static_assert(detail::hash_key_lasts<Key, T>,
		      "a key that is a string is returned by reference, or as a std::string_view or pointer to characters of the object");
	static_assert(detail::hash_hashes<Hash, query>,
		      "the key needs a Hash: it is no string, and objects of its type may be equal although their bytes differ");
	static_assert(detail::hash_compares<Equal, query>, "the key needs an Equal: its type has no operator==");
	using incoming = std::conditional_t<owning, std::unique_ptr<T> &&, T *>;

public:
	using value_type = T;
	using key_type = member;
	using size_type = std::size_t;
	using native_handle_type = struct ::hashtable *;

	/* Allocates nothing, so a table may be static and constinit; the first insertion draws a
	 * seed. */
	constexpr rcu_hash_table() noexcept {}
	/* Has room for @n objects, as after reserve(). */
	explicit rcu_hash_table(size_type n) { reserve(n); }
	explicit rcu_hash_table(rcu_hash_seed seed) noexcept { ::hashtable_init_seeded(&table_, &updates, seed.value); }
	rcu_hash_table(const rcu_hash_table &) = delete;
	rcu_hash_table &operator=(const rcu_hash_table &) = delete;
	/* The table has no readers any more: they would access the table itself. */
	~rcu_hash_table() { ::hashtable_destroy(&table_, dropper(), nullptr); }

	/* An object with the key, any of several; null if there is none.  In a section. */
	T *find(const query &key) const noexcept
	{
		::quiesce__hashtable_lookup_state lookup;

		QUIESCE_IN_SECTION("rcu_hash_table::find()");

		if (quiesce_likely(::quiesce__hashtable_try(&table_, &lookups, &key, &lookup)))
			return static_cast<T *>(lookup.object);
		if constexpr (std::is_trivially_copy_constructible_v<query> && sizeof(query) <= 16) {
			const query copy = key; // lets the key itself stay in a register
			return static_cast<T *>(::quiesce__hashtable_search(lookup.array, lookup.hash, &lookups, &copy));
		} else {
			return static_cast<T *>(::quiesce__hashtable_search(lookup.array, lookup.hash, &lookups, &key));
		}
	}
	/* An object with each key, or null, as hashtable_lookup_many(): as many as both spans have.
	 * Returns the number of keys that have one.  In a section. */
	size_type find_many(std::span<const query> keys, std::span<T *> ret_objects) const noexcept
	{
		QUIESCE_IN_SECTION("rcu_hash_table::find_many()");
		return detail::hash_find_many<const void *, void *>(
			keys, ret_objects, [](const query &key) { return std::addressof(key); },
			[this](const void *const *addresses, size_type n, void **objects) {
				return ::quiesce__many(&table_, &lookups, addresses, n, objects);
			},
			[](void *object) { return static_cast<T *>(object); });
	}
	bool contains(const query &key) const noexcept
	{
		rcu_reader section;

		return find(key) != nullptr;
	}
	/* The number of objects with the key, in a section of its own. */
	size_type count(const query &key) const noexcept
	{
		rcu_reader section;
		size_type nr = 0;

		for ([[__maybe_unused__]] const T &object : equal_range(key))
			nr++;
		return nr;
	}

	/* Inserts, whether or not another object has the key, as std::unordered_multiset does. */
	std::errc try_insert(incoming object) noexcept
	{
		return settle(::hashtable_insert(&table_, address(object)), object);
	}
	void insert(incoming object) { detail::raise(try_insert(std::forward<incoming>(object))); }

	/* Inserts if no object has the key, as std::unordered_set does; else file_exists, and
	 * *@ret_existing is it, in a section. */
	std::errc try_insert_unique(incoming object, T **ret_existing = nullptr) noexcept
	{
		void *existing = nullptr;
		std::errc result = settle(::hashtable_insert_unique(&table_, address(object), &existing), object);

		if (ret_existing)
			*ret_existing = static_cast<T *>(existing);
		return result;
	}
	bool insert_unique(incoming object, T **ret_existing = nullptr)
	{
		return detail::raise(try_insert_unique(std::forward<incoming>(object), ret_existing)) == std::errc{};
	}

	/* Inserts, or replaces an object that has the key: the caller retires that; null: none. */
	std::errc try_exchange(incoming object, T **ret_old) noexcept
	{
		void *old = nullptr;
		std::errc result = settle(::hashtable_set(&table_, address(object), &old), object);

		*ret_old = static_cast<T *>(old);
		return result;
	}
	T *exchange(incoming object)
	{
		T *old;

		detail::raise(try_exchange(std::forward<incoming>(object), &old));
		return old;
	}
	/* Inserts, or replaces and drops an object with the key; returns true if there was none. */
	bool insert_or_assign(incoming object) { return !drop(exchange(std::forward<incoming>(object))); }

	/* Replaces @old by @object, of the same key, and drops @old; returns whether @old was there.
	 * Throws std::invalid_argument if the keys differ, or if both are the same object. */
	bool replace(T &old, incoming object)
	{
		return detail::raise(settle(::hashtable_replace(&table_, std::addressof(old), address(object)), object)) == std::errc{} &&
		       drop(std::addressof(old));
	}

	/* Removes an object, which the caller retires; null: there was none. */
	T *extract(const query &key) noexcept { return static_cast<T *>(::hashtable_remove_key(&table_, &key)); }
	/* Removes @object; returns whether it was there. */
	bool extract(T &object) noexcept { return ::hashtable_remove(&table_, std::addressof(object)) == 0; }
	/* Removes and drops all objects with the key, as hashtable_remove_all(); returns their number. */
	size_type erase(const query &key) noexcept { return ::hashtable_remove_all(&table_, &key, dropper(), nullptr); }
	/* Removes and drops @object; returns whether it was there. */
	bool erase(T &object) noexcept { return extract(object) && drop(std::addressof(object)); }

	/* Updates in one step, by T *fn(T *), as hashtable_update(): called under a lock with the
	 * object or null, it returns the object to be there or null; it may be called again, and
	 * must not use the table.  Drops the object that has left the table, and returns whether
	 * there was one.  If @fn throws, nothing changes, and the exception passes. */
	template<class F>
		requires std::is_invocable_r_v<T *, F &, T *>
	bool update(const query &key, F fn)
	{
		detail::thrown thrown;
		T *old;
		std::errc result = try_update(key, [&](T *object) noexcept {
			return thrown.call([&]() noexcept(std::is_nothrow_invocable_v<F &, T *>) -> T * { return fn(object); }, object);
		}, &old);

		thrown.rethrow();
		detail::raise(result);
		return drop(old);
	}
	/* @ret_old: the object that has left the table, the caller's, or null.  After an error the
	 * object that @fn returned is not in the table. */
	template<class F>
		requires std::is_nothrow_invocable_r_v<T *, F &, T *>
	std::errc try_update(const query &key, F fn, T **ret_old) noexcept
	{
		auto call = [](void *object, void *arg) noexcept -> void * {
			return (*static_cast<F *>(arg))(static_cast<T *>(object));
		};
		void *old = nullptr;
		int result = ::hashtable_update(&table_, &key, call, std::addressof(fn), &old);

		*ret_old = static_cast<T *>(old);
		return static_cast<std::errc>(-result);
	}

	/* Removes and drops the objects for which @match, bool match(const T &), is true; returns their
	 * number.  As hashtable_remove_if(): @match is called under a lock, and must not use the table;
	 * objects inserted meanwhile may be judged or not.  If it throws, no further object is removed,
	 * and the exception passes. */
	template<std::predicate<const T &> F> size_type erase_if(F match)
	{
		struct choice {
			F &match;
			detail::thrown thrown;
		} choice{ match, {} };
		auto call = [](void *object, void *arg) noexcept {
			auto *c = static_cast<struct choice *>(arg);
			const T &each = *static_cast<const T *>(object);

			return !c->thrown.any() && c->thrown.call([&]() noexcept(std::is_nothrow_invocable_v<F &, const T &>) -> bool {
				return c->match(each);
			}, false);
		};
		size_type nr = ::hashtable_remove_if(&table_, call, dropper(), &choice);

		choice.thrown.rethrow();
		return nr;
	}
	/* Removes and drops the objects that were there at the call; as hashtable_clear(). */
	void clear() noexcept { ::hashtable_clear(&table_, dropper(), nullptr); }

	/* Exact while no thread updates the table. */
	size_type size() const noexcept { return ::hashtable_count(&table_); }
	bool empty() const noexcept { return size() == 0; }
	std::errc try_reserve(size_type n) noexcept { return static_cast<std::errc>(-::hashtable_reserve(&table_, n)); }
	void reserve(size_type n) { detail::raise(try_reserve(n)); }

	/* In a section that outlives them; the loop may update.  An object there throughout comes once. */
	using iterator = detail::hash_iterator<T>;
	iterator begin() const noexcept
	{
		QUIESCE_IN_SECTION("rcu_hash_table::begin()");
		return iterator(&table_, nullptr);
	}
	std::default_sentinel_t end() const noexcept { return {}; }
	/* All objects as a view, and those with @key: table.range() | std::views::filter(idle).  The
	 * view of a key has a copy of it, of a string the address only, and outlives its iterators. */
	detail::hash_all<T> range() const noexcept { return detail::hash_all<T>(&table_); }
	detail::hash_matches<T, query> equal_range(const query &key) const noexcept { return { &table_, key }; }

	/* All objects, in several sections, each a short one; not to be called in a section. */
	template<std::invocable<T &> F> void for_each_in_steps(F fn) const
	{
		struct ::hashtable_walk walk;

		for (::hashtable_walk_enter(&table_, &walk); ::hashtable_walk_start(&walk);) {
			detail::leave_section leave;

			while (void *object = ::hashtable_walk_next(&walk))
				fn(*static_cast<T *>(object));
		}
	}

	native_handle_type native_handle() noexcept { return &table_; }

protected: /* for quiesce/ds/hashtable_hazptr.hpp */
	using query_type = query;
	/* Lookups and updates pass the address of a query.  An object passes the address of its
	 * member as its key if that is a query, else its own address plus 1, which no query has:
	 * such objects and queries are at even addresses. */
	static_assert(alignof(query) >= 2 || std::is_lvalue_reference_v<detail::hash_key_result<Key, T>>,
		      "a key of single bytes is returned by reference");
	static constexpr bool plain = std::is_same_v<query, member> && std::is_lvalue_reference_v<detail::hash_key_result<Key, T>>;

	static query key_at(const void *key) noexcept
	{
		const auto address = reinterpret_cast<std::uintptr_t>(key);

		if constexpr (!plain)
			if (address & 1)
				return detail::hash_view(std::invoke(Key, *reinterpret_cast<const T *>(address - 1)));
		return *static_cast<const query *>(key);
	}
	static std::uint64_t hash_any(const void *key, std::uint64_t seed) noexcept
	{
		return detail::hash_of<Hash, query>(key_at(key), seed);
	}
	static std::uint64_t hash_query(const void *key, std::uint64_t seed) noexcept
	{
		return detail::hash_of<Hash, query>(*static_cast<const query *>(key), seed);
	}
	static const void *key_of(const void *object) noexcept
	{
		if constexpr (plain)
			return std::addressof(std::invoke(Key, *static_cast<const T *>(object)));
		else
			return static_cast<const char *>(object) + 1;
	}
	static bool equal_any(const void *object, const void *key) noexcept { return equal(object, key_at(key)); }
	static bool equal_query(const void *object, const void *key) noexcept { return equal(object, *static_cast<const query *>(key)); }
	static bool equal(const void *object, const query &key) noexcept
	{
		return Equal{}(detail::hash_view(std::invoke(Key, *static_cast<const T *>(object))), key);
	}
	static constexpr ::hashtable_type updates = { hash_any, key_of, equal_any };
	static constexpr ::hashtable_type lookups = { hash_query, key_of, equal_query };

	static T *address(T *object) noexcept { return object; }
	static T *address(const std::unique_ptr<T> &object) noexcept { return object.get(); }
	static std::errc settle(int result, T *) noexcept { return static_cast<std::errc>(-result); }
	static std::errc settle(int result, std::unique_ptr<T> &object) noexcept
	{
		if (result == 0)
			static_cast<void>(object.release());
		return static_cast<std::errc>(-result);
	}
	using dropper_type = void (*)(void *object, void *arg);
	/* Null: nothing is done to objects that leave. */
	static constexpr dropper_type dropper() noexcept
	{
		if constexpr (owning)
			return [](void *object, void *) noexcept { Drop{}(static_cast<T *>(object)); };
		else
			return nullptr;
	}
	static bool drop(T *object) noexcept
	{
		if (object)
			Drop{}(object);
		return object != nullptr;
	}

	struct ::hashtable table_ = HASHTABLE_INIT(&updates);
};

/** rcu_owning_hash_table - a rcu_hash_table that retires the objects that leave it. */
template<class T, auto Key, class Hash = rcu_hash, class Equal = rcu_hash_equal>
using rcu_owning_hash_table = rcu_hash_table<T, Key, Hash, Equal, rcu_hash_retire>;

} // namespace quiesce

#endif
