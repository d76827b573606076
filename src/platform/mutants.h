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

/* Guards of hazard pointers and of the threads that reclaim retired objects. */
#define QUIESCE_GUARDS_OF_HAZPTR(X) \
	X(hazptr_unchecked) X(hazptr_always_fast) X(hazptr_scan_skips_last_line) X(hazptr_scans_for_proxy) \
	X(hazptr_scans_for_own_proxy) X(hazptr_no_scan) X(cohort_back_fresh) X(cohort_outer_fresh) X(cohort_child_fresh) \
	X(hazptr_barrier_early) X(hazptr_list_lost) X(hazptr_drain_unmarked) X(hazptr_check_once) \
	X(hazptr_rest_unchecked) X(hazptr_runs_in_caller) X(hazptr_bytes_unbounded) X(hazptr_exit_waits) \
	X(hazptr_waits_for_gate) X(hazptr_stays_in_gate) X(hazptr_unpaced) X(hazptr_steps_on) X(hazptr_all_plain)

/* Guards of the runtime: registry, fences, forks. */
#define QUIESCE_GUARDS_OF_RUNTIME(X) \
	X(heavy_trusts_leader) X(heavy_late_by_arrival) X(watched_rarely) X(heavy_no_turns) X(heavy_shares_running) \
	X(readers_free_taken_twice) X(slots_taken_unlive) X(slots_left_held) X(slots_left_lost) X(slots_first_shared) \
	X(fork_caller_survives) X(fork_intact_early) X(fork_entries_dropped) X(fork_records_dropped) \
	X(fork_lines_dropped) X(fork_registers_blind) X(fork_nested_lost) X(fork_scanner_lost) X(holdout_unblocking_named) \
	X(holdout_named_again) X(holdout_dead_named) X(holdout_hook_unwaited) X(readers_dead_kept) \
	X(fork_generation_early) X(exit_keeps_entry) X(reap_unpublished) X(exit_unwaited) X(exit_no_notify)

/* Guards of callbacks that end their thread, and of allocators that retire. */
#define QUIESCE_GUARDS_OF_RUNS(X) \
	X(run_cancelable) X(run_state_kept) X(cb_ended_lost) X(cb_ended_unfreed) X(cb_ended_spill_lost) \
	X(cb_ended_uncounted) X(cb_ended_beside) X(cb_others_unawaited) X(cb_shared_twice) X(cb_inherited_shared) \
	X(cb_child_runs_on) X(cb_ended_waits) X(helper_ended_unlisted) X(helper_ended_dispatches) X(hazptr_ended_unlisted) \
	X(hazptr_ended_inside) X(hazptr_ended_stepping) X(hazptr_ended_next_lost) \
	X(hazptr_ended_barrier_lost) X(hazptr_ended_trusted) \
	X(cohort_ended_lost) X(srcu_ended_uncounted) X(ref_ended_lost) X(cb_heap_nests) X(cb_heap_two_queues) \
	X(cb_heap_waits) X(hazptr_heap_frees) X(heap_unmarked) X(sync_place_vacant)

/* Guards of objects retired to RCU and SRCU, and of the threads that reclaim them. */
#define QUIESCE_GUARDS_OF_RECLAIM(X) \
	X(hazptr_helper_tried_late) X(hazptr_owner_unawaited) X(gp_poll_trusts_worker) X(gp_poll_trusts_leader) \
	X(srcu_poll_trusts_helper) X(thread_once) X(thread_storm) X(pace_stored) X(gp_help_waits) \
	X(cb_refused_polls) X(cb_worker_tried_once) X(cb_share_left) \
	X(cb_emptied_unreported) X(cb_reported_once) X(cb_throttle_unreported) X(cb_free_unfinished) X(cb_owner_unawaited) \
	X(cb_polled_early) X(cb_ended_busy) X(cb_child_unawaited) X(cb_stopped_unseen) X(cb_backlog_kept) \
	X(cb_goal_torn)

#define QUIESCE_GUARDS(X) \
	QUIESCE_GUARDS_OF_RUNTIME(X) QUIESCE_GUARDS_OF_HAZPTR(X) QUIESCE_GUARDS_OF_RECLAIM(X) QUIESCE_GUARDS_OF_RUNS(X) \
	QUIESCE_GUARDS_PERCPU(X) QUIESCE_GUARDS_DS(X) \
	X(gp_skips_last_reader) X(gp_stops_at_first_idle) X(gp_advance_before_fence) X(gp_no_wait) X(gp_blocks_current) \
	X(gp_ignores_unregistered) X(gp_shares_running) X(gp_completes_older) X(gp_trusts_leader) X(gp_completed_early) \
	X(qsbr_number_now) X(qsbr_no_wait) X(stall_counts_stops) X(qsbr_wake_lost) X(nest_ignored) X(wake_lost) \
	X(cookie_now) X(cb_no_gp) X(cb_snapshot_after) X(cb_barrier_early) X(cb_unpaced) X(cb_pace_kept) \
	X(cb_prompt_lost) X(cb_calm_kept) X(cb_prompt_unset) X(cb_sleep_unchecked) X(cb_spill_unlocked) X(cb_spill_lost) \
	X(cb_carry_forgotten) X(cb_barrier_any_pass) X(cb_trusts_waker) X(cb_left_unwoken) X(cb_unlisted_unchecked) \
	X(protect_unchecked) X(claim_unprotected) X(cached_slot_forked_kept) X(fallback_unexpected) X(fallback_found_twice) \
	X(cached_slot_torn) X(slots_line_uncounted) X(slots_extra_uncounted) X(scan_skips_last_line) X(scan_forgets_first_scan) \
	X(scan_ignores_fallback) X(scan_no_wait) X(scan_wake_lost) X(scan_fences_late) X(scan_completed_leads) \
	X(scan_rank_kept) X(scan_trusts_leader) X(counted_revived) X(percpu_entered_first) X(percpu_lost_stay) \
	X(percpu_one_pass) X(sync_no_replay) X(sync_no_wait) X(sync_count_ignored) X(count_looks_first) \
	X(later_now_no_wait) X(helper_start_lost) X(helper_job_dropped) X(helper_step_twice) X(helper_back_unwoken) \
	X(helper_back_unwatched) X(helper_blocks_unwatched) X(helper_start_unwatched) X(helper_child_blocked) \
	X(helper_stops_first) X(helper_stop_trusts_state) X(shutdown_counts_running) X(shutdown_counts_ending) X(thread_ends_unsettled) \
	X(helper_sleep_unchecked) X(srcu_one_index) X(srcu_trusts_leader) X(srcu_completes_older) X(srcu_no_flip) X(srcu_one_pass) \
	X(srcu_check_late) X(srcu_shares_running) X(srcu_cookie_now) X(urcu_gp_first) X(urcu_others_unfenced) X(urcu_alone_unlocked) \
	X(urcu_no_wait) X(urcu_sleeps_unfenced) X(urcu_cookie_now)

/* Guards of per-CPU counters. */
#define QUIESCE_GUARDS_PERCPU(X) \
	X(rwsem_wake_lost) X(rwsem_timed_counts) X(rwsem_plain_fence) X(rwsem_grant_uncounted) X(rwsem_keeps_block) \
	X(rwsem_ops_unset) X(rwsem_many_twice) X(rwsem_many_kept) X(rwsem_exit_late) X(rwsem_no_drain) \
	X(srcu_reversal_lost) X(srcu_request_stays) X(srcu_wake_lost) X(srcu_no_gp) X(srcu_bytes_kept) X(shutdown_srcu_left) \
	X(srcu_barrier_early) X(srcu_barrier_this_take) X(srcu_own_first) X(srcu_start_kept) X(srcu_untaken_done) \
	X(srcu_take_partial) X(srcu_owner_any) X(ref_sum_before_fence) X(ref_no_restart) X(ref_two_adds) X(ref_unbiased) X(ref_base_kept) \
	X(ref_dead_by_state) X(slab_released_now) X(slab_no_restart) X(slab_opened_late) X(slab_link_kept) \
	X(ref_words_open) X(ref_words_open_early) X(percpu_closed_changes) \
	X(ref_live_apart) X(ref_revived) X(ref_confirm_early) X(ref_many_put_early) X(ref_confirm_unlocked)

/* Guards of containers. */
#define QUIESCE_GUARDS_DS(X) \
	X(unlink_relaxed) X(unlink_cuts) X(splice_no_wait) X(nulls_unordered) X(nulls_at_tail) X(nulls_unchecked) \
	X(nulls_fake_zero) X(radix_two_loads) X(radix_grow_early) X(radix_shrink_clears) X(radix_mark_below) \
	X(radix_marks_lost) X(radix_destroy_unlocked) X(radix_free_now) X(table_unchecked) X(table_search_unchecked) \
	X(table_move_unseen) X(table_search_unseen) X(table_try_once) X(table_search_early) X(table_last_again) \
	X(table_left_unseen) X(table_tag_zero) X(table_out_zero) X(map_unchecked) X(map_search_unchecked) \
	X(table_switch_early) X(table_missed_lost) X(table_missed_unlocked) X(table_move_kept) X(table_merge_unlocked) \
	X(table_update_blind) X(table_erase_some) X(table_merge_early) X(table_sum_once) X(table_seventh_early) X(table_counts_twice) \
	X(table_resize_inherited) X(table_locks_inherited) X(table_callback_lost) X(table_end_unlocked) X(table_end_keeps) \
	X(wfcq_last_unchecked) X(wfcq_clears_late) X(wfcq_head_kept_empty) X(wfcq_no_tail) X(wfcq_spliced_twice) \
	X(wfcq_waits_blind) X(lfq_number_again) X(lfq_last_left) X(lfq_tail_left) X(lfq_tail_first) X(table_seed_twice) \
	X(vq_mute) X(vq_keeps_again) X(vq_ring_mute) X(vq_close_mute) X(vq_passes_no_wake) X(vq_wakes_once) X(vq_no_gp) \
	X(table_line_early) X(table_unlink_full) X(table_walk_twice) X(table_walk_last) X(table_link_protects) X(table_walk_wide) \
	X(map_try_once) X(map_link_late) X(map_walk_twice) X(wfs_unmarked) X(wfs_link_unseen) X(wfs_section_ends) \
	X(lfs_section_ends) X(map_zero_first) X(table_lock_moved) X(table_kept_never) X(table_kept_open) X(map_found_early) \
	X(map_second_unchecked) X(map_link_unchecked) X(vq_sleeps_behind)

#define QUIESCE_X(name) QUIESCE_L_##name,
enum quiesce_label { QUIESCE_LABELS(QUIESCE_X) QUIESCE_NR_LABELS };
#undef QUIESCE_X

enum quiesce_kind {
	QUIESCE_KIND_LIGHT, QUIESCE_KIND_FULL, QUIESCE_KIND_HEAVY, QUIESCE_KIND_ACQUIRE, QUIESCE_KIND_RELEASE, QUIESCE_KIND_RMW,
	QUIESCE_NR_KINDS
};

#define QUIESCE_X(name) QUIESCE_G_##name,
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
