#!/bin/bash
# SPDX-License-Identifier: MIT
# Real threads for longer than the suite: plain, with delays inside every operation, and under AddressSanitizer.
. "$(dirname "$0")/lib.sh"
seconds=1.2
hazptr_seconds=4 # with delays few elements are reused
per_cpu_seconds=2.4
short=1
[ -n "${CI_LONG:-}" ] && seconds=3600 hazptr_seconds=3600 per_cpu_seconds=3600 short=1200
per_cpu=percpu_rwsem,srcu,percpu_ref
with gcc
step "build" plain_build product tools/quiesce-torture tests/torture/claims || finish
[ -x "$plain/quiesce" ] || { skip "the tool is not built"; finish; }
step "torture" "$plain/quiesce" torture --type=rcu,shazptr,hazptr --seconds=$seconds
step "torture, counted per CPU" "$plain/quiesce" torture --type=$per_cpu --seconds=$per_cpu_seconds
for slots in cpu_id thread; do
	step "torture, slots $slots" \
		env QUIESCE_SLOTS=$slots "$plain/quiesce" torture --type=shazptr --seconds=$short
done
step "torture, other waits for hazard pointers" "$plain/quiesce" torture \
	--type=shazptr_skip_self_scan,shazptr_wildcard,shazptr_wildcard_skip_self_scan --seconds=$short
for rate in 20 1000; do
	step "torture, $rate of 65536 accesses held up" \
		"$plain/tools/quiesce-torture" torture --type=rcu,shazptr --seconds=$seconds --perturb=$rate
	step "torture of hazptr, $rate of 65536 accesses held up" \
		"$plain/tools/quiesce-torture" torture --type=hazptr --seconds=$hazptr_seconds --perturb=$rate
	step "torture, counted per CPU, $rate of 65536 accesses held up" "$plain/tools/quiesce-torture" torture \
		--type=$per_cpu --seconds=$per_cpu_seconds --perturb=$rate
	step "torture of type-safe caches, $rate of 65536 accesses held up" \
		"$plain/tools/quiesce-torture" torture --type=slab --seconds=$seconds --perturb=$rate
done
for slots in mm_cid cpu_id thread; do
	step "claims, slots $slots" env QUIESCE_SLOTS=$slots "$plain/tests/torture/claims" --seconds=$short
done
unprotected()
{
	"$plain/tests/torture/claims" --seconds=10 --mutant claim_unprotected
	local status=$?
	[ $status -eq 77 ] && return 77
	[ $status -eq 1 ]
}
# A mutant, the type that has to fail with it, and further arguments.
notices()
{
	"$plain/tools/quiesce-torture" torture --mutant="$1" --type="$2" --seconds=5 --perturb=200 "${@:3}"
	[ $? -eq 1 ]
}
# Counts are as unprotected as claims, where both are restartable sequences.
step "claims notice that they are unprotected" unprotected &&
	step "torture notices counts that are unprotected" notices claim_unprotected percpu_ref --fence=light
step "torture notices a writer that does not wait" notices rwsem_no_drain percpu_rwsem
step "torture notices half a grace period of a domain" notices srcu_one_index srcu
step "torture notices memory of a type-safe cache that goes back at once" notices slab_released_now slab
for sanitizer in address,undefined; do
	dir=$CI_BUILD/torture-${sanitizer%,*}
	# -fno-sanitize=null: see asan.sh.
	step "build with -fsanitize=$sanitizer" setup "$dir" "" quiesce -Dtests=false -Dpeers=disabled -Doptimization=1 \
		-Db_sanitize=$sanitizer -Db_lundef=false -Dc_args=-fno-sanitize=null || continue
	step "torture with -fsanitize=$sanitizer" "$dir/quiesce" torture --type=rcu,shazptr,hazptr,slab --seconds=$seconds
	step "torture with -fsanitize=$sanitizer, counted per CPU" "$dir/quiesce" torture --type=$per_cpu \
		--seconds=$per_cpu_seconds
done
finish
