/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashtable_hazptr.hpp - a table that owns its objects, whose readers protect what they
 * find by hazard pointers, in namespace quiesce; for C++20.
 *
 *	struct session : quiesce::hazard_pointer_obj_base<session> {
 *		std::string name;
 *		connection peer;
 *	};
 *	quiesce::hazard_hash_table<session, &session::name> sessions;
 *
 *	quiesce::hazard_pointer by = quiesce::make_hazard_pointer();    // reader
 *	if (session *s = sessions.find("ada", by))
 *		s->peer.send(message);                                  // may block; no section is held
 *	by.reset_protection();
 *
 *	sessions.insert_unique(std::make_unique<session>());            // updaters
 *	sessions.erase("ada");                                          // retires it
 *
 * Use if a reader keeps an object for long, or waits while it has it: a section of RCU would delay
 * the reclamation of everything.  rcu_owning_hash_table finds faster, and has loops.
 * An object that leaves the table is retired by its hazard_pointer_obj_base, which waits for no
 * section.  So what would only be safe in one is missing here: find() without a hazard pointer,
 * contains(), loops.
 * Context: find(): any thread, also in signal handlers if the hazard pointer is that handler's; it
 *   enters a section of its own, for the table's memory.  Updates: as for hashtable.h; those that
 *   retire may run deleters, see hazard_pointer_obj_base.
 * Cost: find() 3 ns more than that of rcu_hash_table; hashtable_lookup_hazptr().
 * Order and exceptions: as for hashtable.hpp.
 * Source: docs/design/hashtable.md.
 */
#if !defined(__cplusplus) || __cplusplus < 202002L
#error "quiesce/ds/hashtable_hazptr.hpp needs C++20, whose concepts constrain its parameters; hashtable.h is for C and for C++11"
#elif !defined(QUIESCE_DS_HASHTABLE_HAZPTR_HPP)
#define QUIESCE_DS_HASHTABLE_HAZPTR_HPP

#include <quiesce/ds/hashtable.hpp>
#include <quiesce/hazptr.hpp>

namespace quiesce {

/* Disposal of an object that leaves a hazard_hash_table. */
struct hazard_hash_retire {
	template<class T> void operator()(T *object) const noexcept { object->retire(); }
};

namespace detail {

template<class T> inline constexpr bool hash_droppable<hazard_hash_retire, T> = hazard_protectable<T>;

} // namespace detail

/** hazard_hash_table - a hashtable of T, found by the member Key and protected by a hazard pointer. */
template<class T, auto Key, class Hash = rcu_hash, class Equal = rcu_hash_equal>
class hazard_hash_table : private rcu_hash_table<T, Key, Hash, Equal, hazard_hash_retire> {
	using table = rcu_hash_table<T, Key, Hash, Equal, hazard_hash_retire>;
	using query = typename table::query_type;

public:
	using typename table::key_type;
	using typename table::native_handle_type;
	using typename table::size_type;
	using typename table::value_type;

	/* As those of rcu_hash_table. */
	using table::table;
	using table::clear;
	using table::empty;
	using table::erase;
	using table::erase_if; /* calls with the object under the bucket's lock: it is in the table meanwhile */
	using table::extract;
	using table::insert;
	using table::insert_or_assign;
	using table::native_handle;
	using table::replace;
	using table::reserve;
	using table::size;
	using table::try_insert;
	using table::try_reserve;
	using table::try_update; /* under that lock, too */
	using table::update;

	/* An object with the key, any of several, protected by @by, which is not empty; null if there
	 * is none, and then @by protects nothing. */
	T *find(const query &key, hazard_pointer_view by) const noexcept
	{
		::hazptr_t *slot = detail::hazard_access::slot(by);

		return static_cast<T *>(::hashtable_lookup_hazptr(&this->table_, &table::lookups, &key, slot, offset()));
	}
	T *find(const query &key, const hazard_pointer &by) const noexcept { return find(key, by.view()); }

	/* Inserts if no object has the key: errc{}, file_exists, not_enough_memory; true, false. */
	std::errc try_insert_unique(std::unique_ptr<T> &&object) noexcept { return table::try_insert_unique(std::move(object)); }
	bool insert_unique(std::unique_ptr<T> &&object) { return table::insert_unique(std::move(object)); }

private:
	/* The distance of the head, whose address a slot holds, from the beginning of an object. */
	static std::size_t offset() noexcept
	{
		constexpr std::uintptr_t at = std::uintptr_t{ alignof(T) } << 16; /* any address of a T: nothing is loaded */

		return detail::hazard_address(reinterpret_cast<const T *>(at)) - at;
	}
};

} // namespace quiesce

#endif
