#!/bin/bash
# SPDX-License-Identifier: MIT
# The simulator for longer than the suite.  All changes are judged by the same seeds; the long
# run takes other seeds for every commit.
. "$(dirname "$0")/lib.sh"
seconds=0.035 short=0.025 # for sim_srcu and the containers
[ -n "${CI_LONG:-}" ] && seconds=76 short=25
with gcc
step "build" plain_build --suites sim || finish
first=${SIM_FIRST:-1}
[ -z "${CI_LONG:-}" ] || first=${SIM_FIRST:-$((16#$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1)))}
echo "sim: first seed $first"
search() { # scheduler; the highest exit status of all programs
	local program each status=0
	for program in sim_rcu sim_shazptr sim_hazptr sim_srcu sim_percpu_ref sim_slab sim_rwsem sim_rculist sim_idr sim_qsbr sim_queue sim_stack sim_buckets sim_urcu; do
		case $program in
		sim_srcu | sim_rculist | sim_idr | sim_qsbr | sim_queue | sim_stack | sim_buckets | sim_urcu) each=$short ;;
		*) each=$seconds ;;
		esac
		"$plain/tests/sim/$program" --scenario all --sched "$1" --seeds 100000000 --seconds $each --first "$first"
		local rc=$?
		[ $rc -le $status ] || status=$rc
	done >"$CI_BUILD/sim-$1.out" 2>&1
	return $status
}
search random &
other=$!
search pct
pct=$?
wait $other
random=$?
for sched in random pct; do
	out=$CI_BUILD/sim-$sched.out
	passed=$((passed + $(grep -c '^ok' "$out"))) failed=$((failed + $(grep -c '^FAIL' "$out")))
	grep -A2 '^FAIL' "$out"
	[ "${!sched}" -le 1 ] || failed=$((failed + 1))
	awk -v s=$sched '{ for (i = 2; i < NF; i++) if ($(i + 1) == "runs") n += $i } END { print "sim: " n " runs, " s }' "$out"
done
finish
