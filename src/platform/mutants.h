/* SPDX-License-Identifier: MIT */
/* mutants.h - every guard that a test must miss, beside every label of the barrier ledger.
 *
 * A mutant is chosen at run time by name, in builds for the simulator
 * (QUIESCE_SIM) and for torture (QUIESCE_PERTURB) only:
 *	LABEL:kind    its operations of that kind become relaxed (fences: vanish); light full heavy acquire release rmw
 *	guard         QUIESCE_MUTANT(guard) is true where the source asks; who kills which: tests/mutants.list
 */
#ifndef QUIESCE_MUTANTS_H
#define QUIESCE_MUTANTS_H

#include "labels.h"

#define QUIESCE_GUARDS_OF_HAZPTR(X)                                                    \
	X(hazptr_unchecked, "hazptr_protect() does not see whether the pointer changed") \
	X(hazptr_always_quiet, "a protection does not ask whether fences are full") \
	X(hazptr_scan_skips_last_line, "who reclaims does not look at the last line of a range") \
	X(hazptr_looks_for_note, "who sweeps looks for what stands for an object, not for the object") \
	X(hazptr_looks_for_own_note, "who reclaims its own queue does") \
	X(hazptr_no_look, "what is retired is reclaimed without a look")               \
	X(cohort_back_fresh, "what was protected is put back where who waits does not look")  \
	X(cohort_outer_fresh, "what callbacks of an inner cohort retire into the outer one is not waited for") \
	X(cohort_child_fresh, "what callbacks retire into their cohort is not waited for")  \
	X(hazptr_barrier_early, "hazptr_barrier() does not wait for what is protected") \
	X(hazptr_list_lost, "what is left behind is not looked at")                    \
	X(hazptr_drain_unmarked, "who sweeps a queue does not ask to be told of new objects") \
	X(hazptr_look_once, "who has drained a queue does not look at it once more")   \
	X(hazptr_rest_unchecked, "the helper does not look again before it rests from sweeping") \
	X(hazptr_runs_in_caller, "a callback of call_hazptr() may run in the thread that retires") \
	X(hazptr_bytes_unbounded, "large objects wait until there are a thousand") \
	X(hazptr_exit_waits, "hazptr_retire() in a thread that exits waits for the slots that protect the object") \
	X(hazptr_waits_for_gate, "a thread that retires waits for a fork") \
	X(hazptr_stays_in_gate, "a thread that has reclaimed seems to be at it still")

/* Of the runtime: registry, fences, forks. */
#define QUIESCE_GUARDS_OF_RUNTIME(X)                                                   \
	X(heavy_trusts_leader, "a caller waits for a membarrier whose thread does not run")  \
	X(heavy_late_by_arrival, "a caller counts from its arrival how late a membarrier is, whatever happens meanwhile")  \
	X(watched_rarely, "no follower checks as soon as the leader would be late") X(heavy_no_turns, "without membarrier no fences")  \
	X(heavy_shares_running, "a caller is content with a membarrier already running") \
	X(readers_free_taken_twice, "a new entry that another thread takes is counted as one that was given back")  \
	X(slots_let_unlive, "a line is let that no scan looks at") X(slots_left_held, "one that is left with a guard is scanned no more") \
	X(slots_left_lost, "a line that was left while another was taken is not found any more")  \
	X(slots_first_shared, "the first threads' lines are shared while there are others")  \
	X(fork_caller_survives, "in a child that nobody announced the first who comes is taken for the thread that forked")  \
	X(fork_whole_early, "... is repaired once another thread has come")  \
	X(fork_entries_dropped, "... has no readers of the parent's, whoever comes first")  \
	X(fork_records_dropped, "... has no records of liburcu's readers")  \
	X(fork_lines_dropped, "... has no slots of hazptr.h that protect")  \
	X(fork_registers_blind, "a thread registers in a child before it is repaired")  \
	X(fork_nested_lost, "a nested section without an entry is not the child's")  \
	X(fork_place_lost, "a scanner whose handler forks has lost its place when it goes on") \
	X(qsbr_dead_kept, "threads that died online are not given up") \
	X(fork_generation_early, "the generation is read before the repair is seen")  \
	X(exit_keeps_entry, "a thread exits without giving back its entry")            \
	X(reap_unplaced, "who gives up the entry of a dead thread does not say that it reads it")  \
	X(exit_unwaited, "a thread that exits does not wait for scanners that may be reading its block") \
	X(exit_no_notify, "a thread that exits does not wake who waits for it")

/* Of callbacks that end their thread, and allocators that retire. */
#define QUIESCE_GUARDS_OF_RUNS(X)                                                      \
	X(run_cancelable, "a thread may be cancelled in a callback")                   \
	X(run_state_kept, "a thread that ends in a callback is taken to be in it")     \
	X(cb_ended_lost, "the rest of a pass whose callback ends its thread is left to nobody") \
	X(cb_ended_unlingered, "frees that were ready in such a pass are left to their owner") \
	X(cb_ended_spill_lost, "what was linked, and is left of such a pass, is in no list") \
	X(cb_ended_uncounted, "a callback that has ended its thread does not count as run") \
	X(cb_ended_waits, "a thread that ended in a wait for callbacks counts as one that waits") \
	X(helper_ended_unlisted, "a job whose step has ended its thread gets no other step") \
	X(helper_ended_leads, "a helper that has ended goes on being the one that leads") \
	X(hazptr_ended_unlisted, "the queue of an owner whose callback ends it is not listed") \
	X(hazptr_ended_inside, "such an owner stays inside the gate")                  \
	X(hazptr_ended_next_lost, "what it was retiring is forgotten")                 \
	X(hazptr_ended_barrier_lost, "what a barrier had in hand whose callback ends its thread is forgotten") \
	X(hazptr_ended_trusted, "who retires trusts in a helper that has ended and left no other one") \
	X(cohort_ended_lost, "what is left of a cohort's batch whose callback ends its thread is forgotten") \
	X(srcu_ended_uncounted, "a callback of a domain that has ended its thread does not count as run") \
	X(ref_ended_lost, "a change of mode whose confirm function ends its thread is not completed") \
	X(cb_heap_nests, "what an allocator retires while a queue has memory from it takes memory for the same queue") \
	X(cb_heap_two_queues, "what an allocator retires while a thread gets a queue gets it another one") \
	X(cb_heap_waits, "call_rcu() in a free() of the library's waits for less garbage") \
	X(sync_place_vacant, "nobody waits in the place of an enter whose wait has ended its thread")

/* Of what is retired to RCU and SRCU, and of the threads that reclaim it. */
#define QUIESCE_GUARDS_OF_RECLAIM(X)                                                   \
	X(hazptr_helper_tried_late, "without a helper an owner comes back with a batch") \
	X(hazptr_owner_unawaited, "the second scan of a drained queue goes by what waits, not by what its owner runs") \
	X(gp_poll_trusts_worker, "a poller leaves a grace period to a worker that is in a callback") \
	X(gp_poll_trusts_leader, "a poller leaves a grace period to a leader that does not run") \
	X(srcu_poll_trusts_helper, "a poller of a domain leaves a grace period to a helper that is in its callback") \
	X(thread_once, "a thread whose start has failed is never started again")        \
	X(thread_storm, "every caller that needs a thread tries to start it")          \
	X(cb_worker_tried_once, "an owner whose queue is listed does not try again to start the worker") \
	X(cb_share_left, "a queue that goes leaves its share in the sum")             \
	X(cb_emptied_unreported, "an owner that has freed all leaves the rest of a step in the sum") \
	X(cb_reported_once, "a report is not repeated when fewer bytes wait meanwhile")\
	X(cb_free_unfinished, "an object counts as freed before its free() has returned")

#define QUIESCE_GUARDS(X)                                                              \
	QUIESCE_GUARDS_OF_RUNTIME(X) QUIESCE_GUARDS_OF_HAZPTR(X)                       \
	QUIESCE_GUARDS_OF_RECLAIM(X) QUIESCE_GUARDS_OF_RUNS(X)                         \
	X(gp_skips_last_reader, "the scan does not look at the newest registry entry") \
	X(gp_stops_at_first_idle, "the scan ends at the first reader that is outside") \
	X(gp_advance_before_fence, "the number advances before the heavy fence")       \
	X(gp_no_wait, "the grace period does not wait for the readers it found")       \
	X(gp_blocks_current, "a reader of the present grace period counts as old")     \
	X(gp_ignores_unregistered, "sections without registry entry are not waited for")  \
	X(gp_shares_running, "a caller is content with a grace period already running") \
	X(gp_completes_older, "completed goes back to the number of a slower one")     \
	X(gp_trusts_leader, "followers wait for a leader whatever it does")            \
	X(gp_completed_early, "completed is published before the scan")               \
	X(qsbr_number_now, "an updater of the QSBR domain is content with the number that is there") \
	X(qsbr_no_wait, "an updater of the QSBR domain waits for nobody")               \
	X(stall_counts_stops, "the time that a process was stopped is reported as time that it waited") \
	X(qsbr_wake_lost, "a thread that is quiescent wakes nobody")                     \
	X(nest_ignored, "an inner unlock ends the section")                            \
	X(wake_lost, "an unlock with the slow bit does not wake the waiter")           \
	X(cookie_now, "a cookie stands for the grace period already running")          \
	X(cb_no_gp, "callbacks run without a grace period")                            \
	X(cb_snapshot_after, "the queue is looked at again after the grace period")    \
	X(cb_barrier_early, "rcu_barrier returns before the last callback")            \
	X(cb_unpaced, "a slow retirer has a grace period for each object")             \
	X(cb_pace_kept, "many objects do not end the sleep of a worker that paces itself") \
	X(cb_prompt_lost, "a callback does not end that sleep")                        \
	X(cb_calm_kept, "a callback behind objects for free() does not end it")        \
	X(cb_left_calm, "callbacks that came while their queue was in a pass do not end it") \
	X(cb_sleep_unchecked, "the worker sleeps without looking again")               \
	X(cb_spill_unlocked, "a pass takes what was queued without memory while a fork may be prepared") \
	X(cb_spill_lost, "of what was queued without memory the newest is forgotten")            \
	X(cb_carry_forgotten, "a queue that its owner is just listing is left to it")  \
	X(cb_barrier_any_pass, "rcu_barrier trusts a pass that ran no callbacks")      \
	X(cb_trusts_waker, "who waits trusts another one to wake the worker")          \
	X(cb_left_unwoken, "what a caller's pass leaves is not told to the worker")    \
	X(cb_unlisted_unchecked, "what came while its queue was in a pass is not looked at") \
	X(protect_unchecked, "shazptr_protect() does not see whether the pointer changed")  \
	X(claim_unprotected, "a claim is not restarted when it was interrupted")       \
	X(near_forked_kept, "a thread whose handler has forked in the midst of a claim goes on claiming where its parent does") \
	X(fallback_unexpected, "a guard without a slot is cleared as if it had one")  \
	X(fallback_found_twice, "a guard is counted in the parent and cleared in the child")  \
	X(near_torn, "a handler may find the slot of one id with another")             \
	X(slots_line_uncounted, "a line of slots is used before it is counted")        \
	X(slots_extra_uncounted, "a slot of a line is used before it is counted")      \
	X(scan_skips_last_line, "the scan does not look at the last line of a range")  \
	X(scan_forgets_epoch, "a tag of a later scan blocks earlier waiters")          \
	X(scan_ignores_fallback, "fallback guards block nobody")                     \
	X(scan_no_wait, "a waiter is completed at the first look of the scan")              \
	X(scan_wake_lost, "a clear of a slot with a tag does not wake the scan")       \
	X(scan_fences_late, "a fence of the scan is for those too who came after it began")  \
	X(scan_completed_leads, "who was chosen to lead, and then completed, leads")    \
	X(scan_trusts_leader, "who waits never looks in place of who leads")           \
	X(counted_revived, "a reference is taken of an object that has none left")     \
	X(percpu_entered_first, "who entered is summed before who left")               \
	X(percpu_lost_stay, "readers that a child does not have stay inside after it was told")  \
	X(percpu_one_pass, "entered and left of an id are summed together, as one signed word") \
	X(sync_no_replay, "a callback ignores that updaters came and went")            \
	X(sync_no_wait, "an enter that follows the first does not wait for its grace period") \
	X(sync_count_ignored, "a callback makes readers fast while an updater is inside") \
	X(count_looks_first, "who counts looks whether it may before the sequence begins, and counts in it") \
	X(later_now_no_wait, "who wants a call now does not wait if the helper is about to make it") \
	X(helper_start_lost, "a job that is started while its step is taken is forgotten") \
	X(helper_job_dropped, "a job that is started when no thread can be had is forgotten") \
	X(helper_step_twice, "a thread takes a step of a job of which another one takes one") \
	X(helper_back_unwoken, "who leads sleeps on beside a job whose step has come back") \
	X(helper_back_unwatched, "a thread that comes back from a step never watches") \
	X(helper_blocks_unwatched, "who begins to run callbacks does not see that somebody watches") \
	X(helper_start_unwatched, "who lists a job beside callbacks that run does not see that somebody watches") \
	X(helper_child_blocked, "in a child, who takes the place of a thread whose callback blocked is taken to block") \
	X(helper_stops_first, "who leads ends before who watches") \
	X(shutdown_counts_running, "quiesce_shutdown() takes threads that run for ones that are gone") \
	X(shutdown_counts_ending, "quiesce_shutdown() takes a thread that has still to end for one that is gone") \
	X(thread_ends_unsettled, "a thread may end while its starter has still to give it its CPUs") \
	X(helper_sleep_unchecked, "the helper does not see that it is to wake before it sleeps") \
	X(srcu_one_index, "only one of the two indexes has to be seen empty")          \
	X(srcu_trusts_driver, "a waiter waits for one that drives and does not run")  \
	X(srcu_completes_older, "a domain's number goes back")                          \
	X(srcu_no_flip, "new sections are not turned to the index that is empty")      \
	X(srcu_shares_running, "a caller is content with a grace period of its domain already running") \
	X(srcu_cookie_now, "a cookie stands for the grace period of its domain already running") \
	X(urcu_gp_first, "the number of liburcu's readers comes before the fence") \
	X(urcu_others_unfenced, "no heavy fence although other threads of liburcu's read") \
	X(urcu_alone_unlocked, "whether others of liburcu's are registered is asked without the lock") \
	X(urcu_no_wait, "liburcu's readers are not waited for") \
	X(urcu_sleeps_unfenced, "no fence between the request to be woken and the last look") \
	X(urcu_cookie_now, "a cookie is for the grace period that has begun") \
	QUIESCE_GUARDS_PERCPU(X)                                                       \
	QUIESCE_GUARDS_DS(X)

/* Of what is counted per CPU. */
#define QUIESCE_GUARDS_PERCPU(X)                                                       \
	X(rwsem_wake_lost, "a reader that leaves does not wake the writer")            \
	X(rwsem_timed_counts, "a reader that finds a writer counts before it queues") \
	X(rwsem_plain_fence, "a writer does not restart sequences")                    \
	X(rwsem_grant_uncounted, "readers are let in from the queue without being counted") \
	X(rwsem_keeps_block, "a writer that gives up while it drains keeps the others out") \
	X(rwsem_kind_unseen, "a writer does not see to the kind of a lock that is all zero") \
	X(rwsem_many_twice, "a lock that stands twice in a list is waited for twice")   \
	X(rwsem_many_kept, "a lock that stands twice in a list stays slow for its readers") \
	X(rwsem_gate_early, "a writer lets others in before it leaves rcu_sync")       \
	X(rwsem_no_drain, "a writer does not wait for the readers inside")             \
	X(srcu_turn_lost, "a child without handlers forgets what was just being taken of a domain") \
	X(srcu_request_stays, "what was asked of readers for a grace period that is overtaken stays") \
	X(srcu_wake_lost, "an unlock does not wake who waits for the domain")          \
	X(srcu_no_gp, "callbacks of a domain run without a grace period")              \
	X(srcu_bytes_kept, "what callbacks of a domain have reclaimed stays in the sum of garbage") \
	X(shutdown_srcu_left, "quiesce_shutdown() does not wait for callbacks of domains") \
	X(srcu_barrier_early, "a callback counts as run before it has returned")       \
	X(ref_sum_before_fence, "references per CPU are summed before sequences begin anew") \
	X(ref_no_restart, "a plain membarrier before references per CPU are summed")   \
	X(ref_two_adds, "the bias is taken before the sum is added")                   \
	X(ref_unbiased, "a count that is per CPU again may become zero")               \
	X(ref_base_kept, "what was summed before counts once more after a reinit")     \
	X(ref_live_apart, "tryget_live looks for the kill in another word than it counts in") \
	X(ref_revived, "tryget takes a reference of an object that has none left")     \
	X(ref_confirm_early, "the confirm function runs before the change of mode")    \
	X(ref_many_put_early, "of counts that are killed together some are put while others are live") \
	X(ref_confirm_unlocked, "the next change of mode does not wait for the confirm function")

/* Of containers. */
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
	X(table_unchecked, "a lookup with a hazard pointer does not see whether the object is still there") \
	X(table_search_unchecked, "the same where it is not the first object with its tag") \
	X(table_move_unseen, "a lookup with a hazard pointer takes a bucket that has moved for the table") \
	X(table_search_unseen, "the same where it is not the first object with its tag") \
	X(table_try_once, "a lookup that finds no tag and no link does not look at the tags again") \
	X(table_search_early, "a lookup reads the tags before it reads where the last word leads") \
	X(table_last_again, "a lookup looks again at the last word, which may have been a link in between") \
	X(table_left_unseen, "a lookup with a hazard pointer takes a line that the bucket has left for the table") \
	X(table_tag_zero, "a tag may be 0, which words have that were never used") \
	X(table_out_zero, "where an object was taken out there is 0, with a tag") \
	X(map_unchecked, "a lookup does not see whether the key was replaced when it reads the value") \
	X(map_search_unchecked, "the same where it is not in the first line, or looked for again") \
	X(table_switch_early, "the next array is the table's when a bucket has still to move") \
	X(table_missed_lost, "a bucket that could not move is not tried again")        \
	X(table_missed_unlocked, "a bucket that could not move is noted without the lock")  \
	X(table_move_kept, "what a move has copied stays there when it fails")         \
	X(table_merge_unlocked, "several buckets are copied into one without its lock") \
	X(table_update_blind, "an update by a function that had to fetch a line does not look whether the key has come meanwhile") \
	X(table_merge_early, "the one bucket is unlocked before the other is marked as moved") \
	X(table_sum_once, "one sum says that a table is full")                          \
	X(table_seventh_early, "the seventh object of a line is in its word before its tag is") \
	X(table_counts_twice, "the first two who put something into a table make counts each") \
	X(table_resize_inherited, "a resize that begins in a child seems to be the parent's")  \
	X(table_locks_inherited, "the rest of a resize of the parent's goes on in a child")  \
	X(table_turn_lost, "an update does not ask for a callback that has parked")    \
	X(table_end_unlocked, "the end of a table does not wait for who moves its buckets") \
	X(table_end_keeps, "the end of a table leaves its objects where lookups with hazard pointers find them") \
	X(wfcq_last_unchecked, "who takes the last node does not ask whether another one has come behind it") \
	X(wfcq_clears_late, "who takes the last node clears the head after the queue is empty for enqueuers") \
	X(wfcq_head_kept_empty, "who finds that the last node is not the last does not lead the head to it again") \
	X(wfcq_no_tail, "a missing link is the end of the queue, whatever the tail says") \
	X(wfcq_spliced_twice, "who splices leaves the first node for another one who does") \
	X(wfcq_waits_blind, "who waits for a link does not see that the queue is empty") \
	X(lfq_number_again, "a queue that becomes empty again has the number that it had before") \
	X(lfq_last_left, "the last node goes to the caller while the tail leads to it") \
	X(lfq_tail_left, "the head passes a node that the tail leads to") \
	X(lfq_tail_first, "of a closed node the tail goes to the number before the head does") \
	X(table_seed_twice, "the first two who put something into a table draw a seed each") \
	X(table_line_early, "a line that a bucket has left is used again while readers may be in it") \
	X(table_walk_twice, "an iteration does not ask whether it has visited what is behind the first line") \
	X(table_walk_last, "an iteration does not ask whether it has visited the last object of the first line in a hole") \
	X(table_link_protects, "a lookup with a hazard pointer passes over a last word that has become a link") \
	X(table_walk_wide, "an iteration goes on behind all that a bucket of the smaller array stands for") \
	X(map_try_once, "a lookup that finds no key and no link does not ask whether the line has counted") \
	X(map_link_late, "a lookup reads the link after what is in the line") \
	X(map_walk_twice, "an iteration does not ask whether it has visited what is behind the first line") \
	X(wfs_unmarked, "a push does not mark its node as not linked") \
	X(wfs_link_unseen, "who comes between the two steps of a push takes its node for the oldest") \
	X(wfs_section_ends, "a pop leaves its section before its exchange: nodes come back meanwhile") \
	X(lfs_section_ends, "the same of a lock-free stack") \
	X(map_zero_first, "a new line has its key in the first place, where the key 0 is not looked for")

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

extern int quiesce_mutant; /* which is in force; -1: none */

#define quiesce_weakened(label, kind)                                                                   \
	__builtin_expect(quiesce_mutant == (int)QUIESCE_L_##label * QUIESCE_NR_KINDS + QUIESCE_KIND_##kind, 0)
#define QUIESCE_MUTANT(name) __builtin_expect(quiesce_mutant == (int)QUIESCE_G_##name, 0)

/* Choose by name; NULL or "" chooses none.  0, or -EINVAL for an unknown name. */
int quiesce_mutant_set(const char *name);
/* The name of mutant @i in a static buffer, NULL past the end. */
const char *quiesce_mutant_name(int i);

#endif
