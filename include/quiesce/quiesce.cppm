/* SPDX-License-Identifier: MIT */
/* quiesce/quiesce.cppm - "import quiesce;": the C++ faces as a named module.
 *
 * A program compiles this file itself, as each compiler has a format of its own; docs/cpp.md shows
 * how.  The module exports namespace quiesce, and of C the nodes that containers take and the
 * updates of lists.  Macros, and the rest of C, come by the C headers, which a file may include beside
 * the import.
 */
module;

#include <quiesce/counted_ptr.hpp>
#include <quiesce/ds/hashmap.hpp>
#include <quiesce/ds/hashtable.hpp>
#include <quiesce/ds/hashtable_hazptr.hpp>
#include <quiesce/ds/ida.hpp>
#include <quiesce/ds/idr.hpp>
#include <quiesce/ds/lfqueue.hpp>
#include <quiesce/ds/lfstack.hpp>
#include <quiesce/ds/rculist.hpp>
#include <quiesce/ds/unordered_map.hpp>
#include <quiesce/ds/value_queue.hpp>
#include <quiesce/ds/wfcqueue.hpp>
#include <quiesce/ds/wfstack.hpp>
#include <quiesce/ds/xarray.hpp>
#include <quiesce/hazptr.hpp>
#include <quiesce/percpu_rwsem.hpp>
#include <quiesce/rcu.hpp>
#include <quiesce/shazptr.hpp>
#include <quiesce/slab.hpp>
#include <quiesce/srcu.hpp>

export module quiesce;

export namespace quiesce {

using quiesce::swap;

/* hazptr.hpp */
using quiesce::clear_hazard_pointer_batch;
using quiesce::hazard_pointer;
using quiesce::hazard_pointer_array;
using quiesce::hazard_pointer_clean_up;
using quiesce::hazard_pointer_cohort;
using quiesce::hazard_pointer_obj_base;
using quiesce::hazard_pointer_try_clean_up;
using quiesce::hazard_pointer_view;
using quiesce::make_hazard_pointer;
using quiesce::make_hazard_pointer_batch;

/* rcu.hpp */
using quiesce::rcu_barrier;
using quiesce::rcu_default_domain;
using quiesce::rcu_domain;
using quiesce::rcu_obj_base;
using quiesce::rcu_reader;
using quiesce::rcu_retire;
using quiesce::rcu_synchronize;

/* srcu.hpp, shazptr.hpp, slab.hpp, percpu_rwsem.hpp */
using quiesce::percpu_shared_mutex;
using quiesce::shazptr;
using quiesce::slab_allocated;
using quiesce::slab_allocator;
using quiesce::srcu_domain;
using quiesce::srcu_reader;
using quiesce::srcu_section;

/* counted_ptr.hpp */
using quiesce::atomic_counted_ptr;
using quiesce::counted_guard;
using quiesce::counted_obj_base;
using quiesce::counted_ptr;
using quiesce::make_counted;
using quiesce::operator==;
using quiesce::operator<=>;

/* ds/hashmap.hpp, ds/hashtable.hpp, ds/hashtable_hazptr.hpp, ds/unordered_map.hpp */
using quiesce::hazard_hash_retire;
using quiesce::hazard_hash_table;
using quiesce::rcu_hash;
using quiesce::rcu_hash_equal;
using quiesce::rcu_hash_keep;
using quiesce::rcu_hash_key;
using quiesce::rcu_hash_map;
using quiesce::rcu_hash_map_absent;
using quiesce::rcu_hash_map_key;
using quiesce::rcu_hash_map_value;
using quiesce::rcu_hash_retire;
using quiesce::rcu_hash_seed;
using quiesce::rcu_hash_string;
using quiesce::rcu_hash_table;
using quiesce::rcu_owning_hash_table;
using quiesce::rcu_unordered_map;

/* ds/ida.hpp, ds/idr.hpp, ds/xarray.hpp */
using quiesce::ida;
using quiesce::idr;
using quiesce::idr_nodes;
using quiesce::xa_mark;
using quiesce::xarray;

/* Lists, queues and stacks. */
using quiesce::bounded_queue;
using quiesce::conqueue_errc;
using quiesce::lfqueue;
using quiesce::lfstack;
using quiesce::popped_iterator;
using quiesce::popped_view;
using quiesce::rcu_hlist_range;
using quiesce::rcu_list_iterator;
using quiesce::rcu_list_range;
using quiesce::rcu_list_view;
using quiesce::unbounded_queue;
using quiesce::wfcqueue;
using quiesce::wfstack;

} // namespace quiesce

export {

using ::hlist_head;
using ::hlist_node;
using ::lfq_node;
using ::lfs_node;
using ::list_head;
using ::wfcq_node;
using ::wfcq_ret;
using ::wfs_node;

using ::hlist_add_head_rcu;
using ::hlist_add_tail_rcu;
using ::hlist_del_init_rcu;
using ::hlist_del_rcu;
using ::hlist_replace_rcu;
using ::INIT_HLIST_HEAD;
using ::INIT_LIST_HEAD;
using ::list_add_rcu;
using ::list_add_tail_rcu;
using ::list_del_rcu;
using ::list_replace_rcu;
using ::list_splice_init_rcu;

}
