/* SPDX-License-Identifier: MIT */
/* mutants.h - every guard whose absence a test must detect, beside every label of the barrier ledger.
 *
 * A mutant is selected at run time by name, in builds for the simulator (QUIESCE_SIM) and for torture
 * (QUIESCE_PERTURB) only:
 * 	LABEL:kind    operations of that kind become relaxed (fences: vanish); light full heavy acquire release rmw
 * 	guard         QUIESCE_MUTANT(guard) is true in the source; tests/mutants.list has the killer of each mutant
 */
#ifndef QUIESCE_MUTANTS_H
#define QUIESCE_MUTANTS_H

#include "labels.h"

#define QUIESCE_GUARDS_OF_HAZPTR(X)                                                    \
	X(hazptr_unchecked, "hazptr_protect() does not see whether the pointer changed") \
	X(hazptr_always_quiet, "a protection does not check whether fences are full")  \
	X(hazptr_scan_skips_last_line, "a reclaimer does not scan the last line of a range") \
	X(hazptr_scans_for_note, "the sweeper scans for the note of an object, not for the object") \
	X(hazptr_scans_for_own_note, "an owner that reclaims its queue scans for the note of an object") \
	X(hazptr_no_scan, "retired objects are reclaimed without a scan")              \
	X(cohort_back_fresh, "protected objects are put back where the waiter does not check") \
	X(cohort_outer_fresh, "objects that callbacks of an inner cohort retire into the outer one are not waited for") \
	X(cohort_child_fresh, "objects that callbacks retire into their cohort are not waited for") \
	X(hazptr_barrier_early, "hazptr_barrier() does not wait for protected objects") \
	X(hazptr_list_lost, "objects left in a list are not taken")                    \
	X(hazptr_drain_unmarked, "the sweeper drains a queue without setting its limit to 0") \
	X(hazptr_check_once, "the sweeper does not check a drained queue once more")    \
	X(hazptr_rest_unchecked, "the helper does not check again before it stops sweeping") \
	X(hazptr_runs_in_caller, "a callback of call_hazptr() may run in the thread that retires") \
	X(hazptr_bytes_unbounded, "large objects wait until there are a thousand") \
	X(hazptr_exit_waits, "hazptr_retire() in an exiting thread waits for the slots that protect the object") \
	X(hazptr_waits_for_gate, "a thread that retires waits for a fork") \
	X(hazptr_stays_in_gate, "a thread that has reclaimed stays inside the gate")

/* Guards of the runtime: registry, fences, forks. */
#define QUIESCE_GUARDS_OF_RUNTIME(X)                                                   \
	X(heavy_trusts_leader, "a follower waits for a membarrier whose thread does not run") \
	X(heavy_late_by_arrival, "a follower counts from its arrival how late a membarrier is, despite progress") \
	X(watched_rarely, "no follower checks as soon as the leader would be overdue")  \
	X(heavy_no_turns, "without membarrier no fence is made") \
	X(heavy_shares_running, "a caller accepts a membarrier that already runs")     \
	X(readers_free_taken_twice, "a new entry that another thread takes is counted as a released one") \
	X(slots_taken_unlive, "a line gets an owner although no scan reads it") \
	X(slots_left_held, "a line that was left with a guard is not scanned any more") \
	X(slots_left_lost, "a line that was left while another was taken is not found any more") \
	X(slots_first_shared, "the first threads' lines are shared while there are others") \
	X(fork_caller_survives, "in a child without fork handlers the first caller is taken for the survivor") \
	X(fork_whole_early, "a child is whole once a thread other than its survivor has called") \
	X(fork_entries_dropped, "a child drops the parent's readers before the survivor re-enters") \
	X(fork_records_dropped, "a child drops the records of liburcu's readers before the survivor re-enters") \
	X(fork_lines_dropped, "a child drops the slots of hazptr.h before the survivor re-enters") \
	X(fork_registers_blind, "a thread registers in a child before it is repaired")  \
	X(fork_nested_lost, "a nested section without an entry is not the child's")  \
	X(fork_place_lost, "a scanner whose signal handler forks loses its place in the child") \
	X(holdout_unblocking_named, "the hook for holdouts is called with readers that are in no waiter's way") \
	X(holdout_named_again, "the hook for holdouts is called with the same reader again at once") \
	X(holdout_dead_named, "the hook for holdouts is called with threads that have died") \
	X(holdout_hook_unwaited, "a thread that replaces the hook for holdouts does not wait until it has returned") \
	X(readers_dead_kept, "entries of threads that died are not given back")        \
	X(fork_generation_early, "the generation is read before the repair is seen")  \
	X(exit_keeps_entry, "a thread exits without releasing its entry")              \
	X(reap_unplaced, "a thread that releases the entry of a dead one does not announce that it reads it") \
	X(exit_unwaited, "a thread that exits does not wait for scanners that may be reading its block") \
	X(exit_no_notify, "a thread that exits does not wake its waiter")

/* Guards of callbacks that end their thread, and of allocators that retire. */
#define QUIESCE_GUARDS_OF_RUNS(X)                                                      \
	X(run_cancelable, "a thread may be cancelled in a callback")                   \
	X(run_state_kept, "a thread that ends in a callback keeps the state of the callback") \
	X(cb_ended_lost, "the rest of a pass whose callback ends its thread is lost")  \
	X(cb_ended_unlingered, "frees that were ready in such a pass are left to their owner") \
	X(cb_ended_spill_lost, "the linked rest of such a pass is in no list")         \
	X(cb_ended_uncounted, "a callback that has ended its thread does not count as run") \
	X(cb_ended_beside, "a thread that ended in a pass gives back queues whose callbacks helpers still run") \
	X(cb_helpers_unawaited, "a pass ends while a helper runs callbacks of it")     \
	X(cb_shared_twice, "a queue that one reclaimer has taken is taken by another one") \
	X(cb_inherited_shared, "callbacks that a forking thread has queued before and after run at the same time") \
	X(cb_child_helps, "a helper whose callback has forked goes on with its queue in the child") \
	X(cb_ended_waits, "a thread that ended in a wait for callbacks counts as a waiter") \
	X(helper_ended_unlisted, "a job whose step has ended its thread gets no other step") \
	X(helper_ended_leads, "a helper that has ended remains the leader")            \
	X(hazptr_ended_unlisted, "the queue of an owner whose callback ends it is not listed") \
	X(hazptr_ended_inside, "such an owner stays inside the gate")                  \
	X(hazptr_ended_next_lost, "the object that such an owner was retiring is lost") \
	X(hazptr_ended_barrier_lost, "objects of a barrier whose callback ends its thread are lost") \
	X(hazptr_ended_trusted, "a retirer relies on a helper that has ended without a successor") \
	X(cohort_ended_lost, "the rest of a cohort's batch whose callback ends its thread is lost") \
	X(srcu_ended_uncounted, "a callback of a domain that has ended its thread does not count as run") \
	X(ref_ended_lost, "a change of mode whose confirm function ends its thread is not completed") \
	X(cb_heap_nests, "objects that an allocator retires while a queue allocates make the queue allocate again") \
	X(cb_heap_two_queues, "objects that an allocator retires while a thread gets a queue give it another one") \
	X(cb_heap_waits, "call_rcu() in a free() of the library waits for less garbage") \
	X(sync_place_vacant, "no waiter replaces an enter whose wait has ended its thread")

/* Guards of objects retired to RCU and SRCU, and of the threads that reclaim them. */
#define QUIESCE_GUARDS_OF_RECLAIM(X)                                                   \
	X(hazptr_helper_tried_late, "without a helper an owner visits only with a batch") \
	X(hazptr_owner_unawaited, "the second check of a drained queue ignores callbacks that its owner runs") \
	X(gp_poll_trusts_worker, "a poller leaves a grace period to a worker that is in a callback") \
	X(gp_poll_trusts_leader, "a poller leaves a grace period to a leader that does not run") \
	X(srcu_poll_trusts_helper, "a poller of a domain leaves a grace period to a helper that is in its callback") \
	X(thread_once, "a thread whose start has failed is never started again")        \
	X(thread_storm, "every caller that needs a thread tries to start it")          \
	X(cb_worker_tried_once, "an owner whose queue is listed does not try again to start the worker") \
	X(cb_share_left, "a queue that is freed leaves its share in the sum")          \
	X(cb_emptied_unreported, "an owner that has freed everything leaves the rest of a step in the sum") \
	X(cb_reported_once, "a report is not repeated when fewer bytes wait meanwhile") \
	X(cb_free_unfinished, "an object counts as freed before its free() has returned")

#define QUIESCE_GUARDS(X)                                                              \
	QUIESCE_GUARDS_OF_RUNTIME(X) QUIESCE_GUARDS_OF_HAZPTR(X)                       \
	QUIESCE_GUARDS_OF_RECLAIM(X) QUIESCE_GUARDS_OF_RUNS(X)                         \
	X(gp_skips_last_reader, "the scan skips the newest registry entry")            \
	X(gp_stops_at_first_idle, "the scan ends at the first reader that is outside") \
	X(gp_advance_before_fence, "the number advances before the heavy fence")       \
	X(gp_no_wait, "the grace period does not wait for the readers it found")       \
	X(gp_blocks_current, "a reader of the present grace period counts as old")     \
	X(gp_ignores_unregistered, "sections without registry entry are not waited for")  \
	X(gp_shares_running, "a caller accepts a grace period that already runs")      \
	X(gp_completes_older, "completed returns to the number of a slower grace period") \
	X(gp_trusts_leader, "followers wait for a leader that makes no progress")      \
	X(gp_completed_early, "completed is published before the scan")               \
	X(qsbr_number_now, "an updater of the QSBR domain accepts the present number") \
	X(qsbr_no_wait, "an updater of the QSBR domain does not wait")                 \
	X(stall_counts_stops, "the time that a process was stopped is reported as time waited") \
	X(qsbr_wake_lost, "a quiescent thread does not wake its waiter")               \
	X(nest_ignored, "an inner unlock ends the section")                            \
	X(wake_lost, "an unlock with the slow bit does not wake the waiter")           \
	X(cookie_now, "a cookie is for the grace period that already runs")            \
	X(cb_no_gp, "callbacks run without a grace period")                            \
	X(cb_snapshot_after, "the queue is read again after the grace period")         \
	X(cb_barrier_early, "rcu_barrier returns before the last callback")            \
	X(cb_unpaced, "a slow retirer has a grace period for each object")             \
	X(cb_pace_kept, "many objects do not end the sleep of a worker that paces itself") \
	X(cb_prompt_lost, "a callback does not end the sleep of a worker that paces itself") \
	X(cb_calm_kept, "a callback behind objects for free() does not end that sleep") \
	X(cb_left_calm, "callbacks queued while their queue was in a pass do not end that sleep") \
	X(cb_sleep_unchecked, "the worker sleeps without checking again")              \
	X(cb_spill_unlocked, "a pass takes objects queued without memory while a fork may be prepared") \
	X(cb_spill_lost, "the newest object queued without memory is lost")            \
	X(cb_carry_forgotten, "a queue that its owner is about to list is left to the owner") \
	X(cb_barrier_any_pass, "rcu_barrier trusts a pass that ran no callbacks")      \
	X(cb_trusts_waker, "a waiter relies on another one to wake the worker")        \
	X(cb_left_unwoken, "the worker is not woken for what a caller's pass leaves")  \
	X(cb_unlisted_unchecked, "objects queued while their queue was in a pass are not checked for") \
	X(protect_unchecked, "shazptr_protect() does not check whether the pointer changed") \
	X(claim_unprotected, "a claim is not restarted when it was interrupted")       \
	X(cached_slot_forked_kept, "a thread whose signal handler has forked during a claim continues to claim in the parent's block") \
	X(fallback_unexpected, "a guard without a slot is cleared as if it had one")   \
	X(fallback_found_twice, "a guard is counted in the parent and cleared in the child") \
	X(cached_slot_torn, "a signal handler may find the slot of one id with another id")   \
	X(slots_line_uncounted, "a line of slots is used before it is counted")        \
	X(slots_extra_uncounted, "a slot of a line is used before it is counted")      \
	X(scan_skips_last_line, "the scan skips the last line of a range")             \
	X(scan_forgets_epoch, "a tag of a later scan blocks earlier waiters")          \
	X(scan_ignores_fallback, "fallback guards block no waiter")                    \
	X(scan_no_wait, "a waiter is completed at the first scan")                     \
	X(scan_wake_lost, "a clear of a slot with a tag does not wake the scan")       \
	X(scan_fences_late, "a fence of the scan also serves waiters that came after it began") \
	X(scan_completed_leads, "a waiter that was chosen to lead, and then completed, leads") \
	X(scan_rank_kept, "the last follower checks as late as when there were others before it") \
	X(scan_trusts_leader, "a follower never scans in place of the leader")         \
	X(counted_revived, "a reference is taken to an object that has none left")     \
	X(percpu_entered_first, "entries are summed before leaves")                    \
	X(percpu_lost_stay, "readers that a child does not have stay inside after the child is reinitialised") \
	X(percpu_one_pass, "entries and leaves of an id are summed together, as one signed word") \
	X(sync_no_replay, "a callback ignores that updaters entered and left")         \
	X(sync_no_wait, "an enter that follows the first does not wait for its grace period") \
	X(sync_count_ignored, "a callback makes readers fast while an updater is inside") \
	X(count_looks_first, "a count is checked for permission before the sequence begins") \
	X(later_now_no_wait, "a caller that wants a call made now does not wait for the helper that makes it") \
	X(helper_start_lost, "a job that is started during its step is lost")          \
	X(helper_job_dropped, "a job that is started when no thread can be created is lost") \
	X(helper_step_twice, "two threads take steps of one job")                      \
	X(helper_back_unwoken, "the leader sleeps beside a job whose step has returned") \
	X(helper_back_unwatched, "a thread that returns from a step never watches")    \
	X(helper_blocks_unwatched, "a thread that begins to run callbacks does not ensure a watcher") \
	X(helper_start_unwatched, "a caller that lists a job while callbacks run does not ensure a watcher") \
	X(helper_child_blocked, "in a child the successor of a thread whose callback blocked counts as blocked") \
	X(helper_stops_first, "the leader ends before the watcher")                    \
	X(shutdown_counts_running, "quiesce_shutdown() counts running threads as gone") \
	X(shutdown_counts_ending, "quiesce_shutdown() counts a thread that is about to end as gone") \
	X(thread_ends_unsettled, "a thread may end while its starter still has to set its CPUs") \
	X(helper_sleep_unchecked, "the helper does not check the wake request before it sleeps") \
	X(srcu_one_index, "only one of the two indexes is required to be empty")       \
	X(srcu_trusts_driver, "a waiter waits for a driver that does not run")         \
	X(srcu_completes_older, "the number of a domain decreases")                    \
	X(srcu_no_flip, "new sections are not turned to the index that is empty")      \
	X(srcu_shares_running, "a caller accepts a grace period of its domain that already runs") \
	X(srcu_cookie_now, "a cookie is for the grace period of its domain that already runs") \
	X(urcu_gp_first, "the number of liburcu's readers is stored before the fence") \
	X(urcu_others_unfenced, "no heavy fence although other threads of liburcu's read") \
	X(urcu_alone_unlocked, "other registered threads of liburcu are counted without the lock") \
	X(urcu_no_wait, "liburcu's readers are not waited for") \
	X(urcu_sleeps_unfenced, "no fence between the wake request and the last check") \
	X(urcu_cookie_now, "a cookie is for the grace period that has begun") \
	QUIESCE_GUARDS_PERCPU(X)                                                       \
	QUIESCE_GUARDS_DS(X)

/* Guards of per-CPU counters. */
#define QUIESCE_GUARDS_PERCPU(X)                                                       \
	X(rwsem_wake_lost, "a reader that leaves does not wake the writer")            \
	X(rwsem_timed_counts, "a reader that finds a writer counts before it queues") \
	X(rwsem_plain_fence, "a writer does not restart sequences")                    \
	X(rwsem_grant_uncounted, "readers are let in from the queue without being counted") \
	X(rwsem_keeps_block, "a writer that gives up while it drains keeps others out") \
	X(rwsem_kind_unseen, "a writer does not set the kind of a lock that is all zero") \
	X(rwsem_many_twice, "a lock that occurs twice in a list is waited for twice")  \
	X(rwsem_many_kept, "a lock that occurs twice in a list stays slow for its readers") \
	X(rwsem_gate_early, "a writer lets others in before it leaves rcu_sync")       \
	X(rwsem_no_drain, "a writer does not wait for the readers inside")             \
	X(srcu_turn_lost, "a child without handlers loses the head that was being taken from a domain") \
	X(srcu_request_stays, "a request to readers for a grace period that is overtaken stays") \
	X(srcu_wake_lost, "an unlock does not wake the waiter of the domain")          \
	X(srcu_no_gp, "callbacks of a domain run without a grace period")              \
	X(srcu_bytes_kept, "reclaimed objects of a domain stay in the sum of garbage") \
	X(shutdown_srcu_left, "quiesce_shutdown() does not wait for callbacks of domains") \
	X(srcu_barrier_early, "a callback counts as run before it has returned")       \
	X(ref_sum_before_fence, "references per CPU are summed before sequences begin anew") \
	X(ref_no_restart, "a plain membarrier before references per CPU are summed")   \
	X(ref_two_adds, "the bias is taken before the sum is added")                   \
	X(ref_unbiased, "a count that is per CPU again may become zero")               \
	X(ref_base_kept, "an old sum counts once more after a reinit")                 \
	X(ref_live_apart, "tryget_live checks for the kill in another word than it counts in") \
	X(ref_revived, "tryget takes a reference to an object that has none left")     \
	X(ref_confirm_early, "the confirm function runs before the change of mode")    \
	X(ref_many_put_early, "of counts that are killed together some are put while others are live") \
	X(ref_confirm_unlocked, "the next change of mode does not wait for the confirm function")

/* Guards of containers. */
#define QUIESCE_GUARDS_DS(X)                                                           \
	X(unlink_relaxed, "the link past a removed entry is stored without an order")  \
	X(unlink_cuts, "a removed entry leads nowhere")                                \
	X(splice_no_wait, "a splice does not wait for the readers of the list that it empties") \
	X(nulls_unordered, "the link of an entry used again is stored without an order") \
	X(nulls_at_tail, "an entry used again is added behind the others")             \
	X(nulls_unchecked, "a walk does not see that it ended in another chain")       \
	X(nulls_fake_zero, "the end of an entry that is in no chain is that of a chain") \
	X(radix_two_loads, "a find in a tree reads the height of the tree apart from its root")  \
	X(radix_grow_early, "a new root is published before the old one is below it")   \
	X(radix_shrink_clears, "a root that is taken out leads nowhere")                  \
	X(radix_mark_below, "a mark is set at the bottom first")                         \
	X(radix_marks_lost, "a new root does not have the marks of the old one")         \
	X(radix_destroy_unlocked, "a tree is destroyed without the lock")                 \
	X(radix_free_now, "nodes are freed without a grace period")                      \
	X(table_unchecked, "a lookup with a hazard pointer does not check that the object is still there") \
	X(table_search_unchecked, "such a lookup does not check it where the object is not the first with its tag") \
	X(table_move_unseen, "a lookup with a hazard pointer accepts a bucket that has moved") \
	X(table_search_unseen, "such a lookup accepts it where the object is not the first with its tag") \
	X(table_try_once, "a lookup that finds no tag and no link does not check the tags again") \
	X(table_search_early, "a lookup reads the tags before the link in the last word") \
	X(table_last_again, "a lookup reads the last word again, which may have been a link in between") \
	X(table_left_unseen, "a lookup with a hazard pointer accepts a line that the bucket has left") \
	X(table_tag_zero, "a tag may be 0, which words have that were never used") \
	X(table_out_zero, "where an object was taken out there is 0, with a tag") \
	X(map_unchecked, "a lookup does not check whether the key was replaced when it reads the value") \
	X(map_search_unchecked, "such a lookup does not check it beyond the first line, or in a retry") \
	X(table_switch_early, "the next array is the table's when a bucket has still to move") \
	X(table_missed_lost, "a bucket that could not move is not tried again")        \
	X(table_missed_unlocked, "a bucket that could not move is noted without the lock")  \
	X(table_move_kept, "what a move has copied stays there when it fails")         \
	X(table_merge_unlocked, "several buckets are copied into one without its lock") \
	X(table_update_blind, "an update that had to allocate a line does not check whether the key was inserted meanwhile") \
	X(table_merge_early, "the one bucket is unlocked before the other is marked as moved") \
	X(table_sum_once, "one sum says that a table is full")                          \
	X(table_seventh_early, "the seventh object of a line is in its word before its tag is") \
	X(table_counts_twice, "the first two inserters of a table make counts each")   \
	X(table_resize_inherited, "a resize that begins in a child seems to be the parent's")  \
	X(table_locks_inherited, "the rest of a resize of the parent continues in a child") \
	X(table_turn_lost, "an update does not ask for a callback that has parked")    \
	X(table_end_unlocked, "the destruction of a table does not wait for a thread that moves its buckets") \
	X(table_end_keeps, "the destruction of a table leaves its objects where lookups with hazard pointers find them") \
	X(wfcq_last_unchecked, "a thread that takes the last node does not check for one behind it") \
	X(wfcq_clears_late, "a thread that takes the last node clears the head after the queue is empty for enqueuers") \
	X(wfcq_head_kept_empty, "a thread that finds another node behind the last does not point the head to it again") \
	X(wfcq_no_tail, "a missing link is the end of the queue, regardless of the tail") \
	X(wfcq_spliced_twice, "a splicer leaves the first node for another splicer")   \
	X(wfcq_waits_blind, "a thread that waits for a link does not check that the queue is empty") \
	X(lfq_number_again, "a queue that becomes empty again has the number that it had before") \
	X(lfq_last_left, "the last node is returned to the caller while the tail points to it") \
	X(lfq_tail_left, "the head passes a node to which the tail points")            \
	X(lfq_tail_first, "the tail of a closed node gets the number before the head does") \
	X(table_seed_twice, "the first two inserters of a table draw a seed each")     \
	X(table_line_early, "a line that a bucket has left is used again while readers may be in it") \
	X(table_walk_twice, "an iteration does not check whether it has visited the objects behind the first line") \
	X(table_walk_last, "an iteration does not check whether it has visited the last object of the first line in a hole") \
	X(table_link_protects, "a lookup with a hazard pointer passes over a last word that has become a link") \
	X(table_walk_wide, "an iteration continues behind everything that a bucket of the smaller array covers") \
	X(map_try_once, "a lookup that finds no key and no link does not check whether the line has counted") \
	X(map_link_late, "a lookup reads the link after the entries of the line")      \
	X(map_walk_twice, "an iteration does not check whether it has visited the entries behind the first line") \
	X(wfs_unmarked, "a push does not mark its node as not linked") \
	X(wfs_link_unseen, "a thread that runs between the two steps of a push takes its node for the oldest") \
	X(wfs_section_ends, "a pop leaves its section before its exchange: nodes return meanwhile") \
	X(lfs_section_ends, "a pop of a lock-free stack leaves its section before its exchange") \
	X(map_zero_first, "a new line has its key in the first place, where lookups do not search for the key 0")

#define QUIESCE_X(name) QUIESCE_L_##name,
enum quiesce_label { QUIESCE_LABELS(QUIESCE_X) QUIESCE_NR_LABELS };
#undef QUIESCE_X

enum quiesce_kind {
	QUIESCE_KIND_LIGHT, QUIESCE_KIND_FULL, QUIESCE_KIND_HEAVY, QUIESCE_KIND_ACQUIRE, QUIESCE_KIND_RELEASE, QUIESCE_KIND_RMW,
	QUIESCE_NR_KINDS
};

#define QUIESCE_X(name, what) QUIESCE_G_##name,
enum quiesce_guard {
	QUIESCE_G_first = QUIESCE_NR_LABELS * QUIESCE_NR_KINDS, QUIESCE_GUARDS(QUIESCE_X) QUIESCE_NR_MUTANTS
};
#undef QUIESCE_X

extern int quiesce_mutant; /* the selected mutant; -1: none */

#define quiesce_weakened(label, kind)                                                                   \
	__builtin_expect(quiesce_mutant == (int)QUIESCE_L_##label * QUIESCE_NR_KINDS + QUIESCE_KIND_##kind, 0)
#define QUIESCE_MUTANT(name) __builtin_expect(quiesce_mutant == (int)QUIESCE_G_##name, 0)

/* Select a mutant by name; NULL or "" selects none.  0, or -EINVAL for an unknown name. */
int quiesce_mutant_set(const char *name);
/* Returns the name of mutant @i in a static buffer, NULL past the end. */
const char *quiesce_mutant_name(int i);

#endif
