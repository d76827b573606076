// SPDX-License-Identifier: MIT
//! The meaning of each type in one thread or a few. Among them are the ideas of the tests of crossbeam-epoch and haphazard: everything that is
//! retired is destroyed once; guards nest; a thread that ends leaves nothing behind; tags stay with their pointers.

use quiesce::hazard::{self, HazardCell, HazardPointer};
use quiesce::map::HashMap;
use quiesce::rcu::{self, Atomic, Guard, Owned, RcuCell, Shared};
use quiesce::shazptr::Waited;
use quiesce::sync::{PercpuRef, PercpuRwLock, RcuSync, Srcu, SrcuCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::Duration;

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
	fn drop(&mut self) {
		self.0.fetch_add(1, SeqCst);
	}
}

fn counter() -> (Arc<AtomicUsize>, impl Fn() -> Counted) {
	let count = Arc::new(AtomicUsize::new(0));
	let make = count.clone();
	(count, move || Counted(make.clone()))
}

#[repr(align(256))]
struct Aligned(u8);

fn is_send<T: Send>(_: &T) {}
fn is_sync<T: Sync>(_: &T) {}

#[test]
fn guards_nest_and_end_in_any_order() {
	let mut guards: Vec<Guard> = (0..100).map(|_| rcu::read()).collect();
	guards.swap(0, 50);
	assert!(catch_unwind(rcu::synchronize).is_err());
	drop(guards.remove(10));
	assert!(catch_unwind(rcu::synchronize).is_err(), "the outer sections are open");
	drop(guards);
	rcu::synchronize();
}

#[test]
fn a_panic_leaves_its_sections() {
	let cell = RcuCell::new(1);
	let result = catch_unwind(AssertUnwindSafe(|| {
		let _guard = rcu::read();
		cell.read(|_| rcu::section(|_| panic!("on purpose")))
	}));
	assert!(result.is_err());
	rcu::synchronize();
	let mut guard = rcu::read();
	assert!(catch_unwind(AssertUnwindSafe(|| guard.repin_after(|| panic!("on purpose")))).is_err());
	assert!(catch_unwind(rcu::synchronize).is_err(), "the section has begun again");
	drop(guard);
	rcu::synchronize();
	assert!(catch_unwind(AssertUnwindSafe(|| cell.update(|_| panic!("on purpose")))).is_err());
	rcu::synchronize();
	assert_eq!(cell.load(), 1);
}

#[test]
fn waits_in_a_section_panic_before_they_do_anything() {
	let cell = RcuCell::new(1);
	let _guard = rcu::read();
	for wait in [rcu::synchronize, rcu::synchronize_expedited, rcu::barrier, rcu::throttle] {
		assert!(catch_unwind(wait).is_err());
	}
	assert!(catch_unwind(AssertUnwindSafe(|| cell.swap(2))).is_err());
	assert_eq!(cell.load(), 1);
}

#[test]
fn cells_drop_each_value_once() {
	let (count, make) = counter();
	let cell = RcuCell::new(make());
	for _ in 0..1000 {
		cell.replace(make());
		cell.update(|_| make());
	}
	drop(cell.swap(make()));
	rcu::barrier();
	assert_eq!(count.load(SeqCst), 2001);
	drop(cell.into_inner());
	assert_eq!(count.load(SeqCst), 2002);
	drop(RcuCell::new(make()));
	assert_eq!(count.load(SeqCst), 2003);
}

#[test]
fn hazard_cells_drop_each_value_once() {
	let (count, make) = counter();
	let cell = HazardCell::new(make());
	for _ in 0..1000 {
		cell.replace(make());
		cell.update(|_| make());
	}
	hazard::barrier();
	assert_eq!(count.load(SeqCst), 2000);
	drop(cell);
	assert_eq!(count.load(SeqCst), 2001);
}

#[test]
fn srcu_cells_drop_each_value_once() {
	let (count, make) = counter();
	let cell = SrcuCell::new(make());
	for _ in 0..100 {
		cell.replace(make());
	}
	drop(cell.swap(make()));
	drop(cell);
	assert_eq!(count.load(SeqCst), 102);
}

#[test]
fn a_thread_that_ends_leaves_nothing_behind() {
	let (count, make) = counter();
	let cell = Arc::new(RcuCell::new(make()));
	let hazard_cell = Arc::new(HazardCell::new(make()));
	let threads: Vec<_> = (0..8)
		.map(|_| {
			let (cell, hazard_cell, values) = (cell.clone(), hazard_cell.clone(), [make(), make(), make(), make()]);
			thread::spawn(move || {
				let [a, b, c, d] = values;
				cell.replace(a);
				hazard_cell.replace(b);
				rcu::defer(move || drop(c));
				rcu::read().defer(move || drop(d));
			})
		})
		.collect();
	threads.into_iter().for_each(|thread| thread.join().unwrap());
	rcu::barrier();
	hazard::barrier();
	assert_eq!(count.load(SeqCst), 32);
}

#[test]
fn deferred_calls_may_defer() {
	let (count, make) = counter();
	let (inner, outer) = (make(), make());
	rcu::defer(move || {
		drop(outer);
		rcu::synchronize();
		rcu::defer(move || drop(inner));
	});
	rcu::barrier();
	rcu::barrier();
	assert_eq!(count.load(SeqCst), 2);
}

#[test]
fn objects_have_the_alignment_and_size_of_their_type() {
	let cell = RcuCell::new(Aligned(1));
	cell.read(|value| assert_eq!((value as *const Aligned as usize % 256, value.0), (0, 1)));
	cell.replace(Aligned(2));
	assert_eq!(cell.read(|value| value.0), 2);
	let nothing = HazardCell::new(());
	nothing.replace(());
	let owned = Owned::new(Aligned(3)).with_tag(255);
	assert_eq!((owned.tag(), owned.0), (255, 3));
	assert_eq!(Owned::new([7u8; 10000]).into_inner()[9999], 7);
}

#[test]
fn tags_stay_with_their_pointers() {
	let link = Atomic::new(5u8);
	let guard = rcu::read();
	let plain = link.load(Acquire, &guard);
	assert_eq!((plain.tag(), plain.with_tag(9).tag()), (0, 1), "three bits, whatever the type");
	link.compare_exchange(plain, plain.with_tag(3), AcqRel, Acquire, &guard).unwrap();
	let error = link.compare_exchange(plain, Owned::new(6).with_tag(2), AcqRel, Acquire, &guard).unwrap_err();
	assert_eq!((error.current.tag(), error.new.tag(), *error.new), (3, 2, 6));
	// SAFETY: no other thread has the object.
	assert_eq!(unsafe { error.current.as_ref() }, Some(&5));
	assert_eq!(error.current.as_raw(), plain.as_raw());
	assert_ne!(error.current, plain);
	assert!(Shared::<u8>::null().with_tag(1).as_raw().is_null());
	// SAFETY: no other thread has the object.
	assert_eq!(unsafe { link.try_into_owned() }.unwrap().tag(), 3);
}

#[test]
fn repin_lets_updaters_proceed() {
	let mut guard = rcu::read();
	guard.repin_after(|| {
		rcu::synchronize();
		drop(rcu::read());
	});
	guard.repin();
	drop(guard);
	rcu::synchronize();
}

#[test]
fn a_slot_protects_until_it_is_reset() {
	let (count, make) = counter();
	let cell = HazardCell::new(make());
	let (mut first, mut second) = (HazardPointer::new(), HazardPointer::new());
	let old = cell.load(&mut first);
	cell.replace(make());
	let _new = cell.load(&mut second);
	assert!(!hazard::try_barrier());
	assert_eq!((count.load(SeqCst), old.0.load(SeqCst)), (0, 0));
	first.reset_protection();
	hazard::barrier();
	assert_eq!(count.load(SeqCst), 1);
	// The slot keeps its protection in another thread.
	let third = thread::spawn(move || {
		first.reset_protection();
		first
	});
	drop(third.join().unwrap());
}

#[test]
fn protections_outlive_their_threads() {
	let (count, make) = counter();
	let cell = HazardCell::new(make());
	thread::scope(|s| {
		let (held, slot) = s
			.spawn(|| {
				let slot = Box::into_raw(Box::new(HazardPointer::new()));
				// SAFETY: the box is leaked until the end of the test.
				(cell.load(unsafe { &mut *slot }), slot as usize)
			})
			.join()
			.unwrap();
		for _ in 0..20 {
			s.spawn(|| drop(HazardPointer::new())).join().unwrap();
		}
		cell.replace(make());
		assert!(!hazard::try_barrier());
		assert_eq!(held.0.load(SeqCst), 0);
		// SAFETY: the box of above; nothing is borrowed from it any more. Barriers of other tests wait for it.
		drop(unsafe { Box::from_raw(slot as *mut HazardPointer) });
	});
	hazard::barrier();
	assert_eq!(count.swap(0, SeqCst), 1);
	let value = Waited::new(5);
	thread::scope(|s| {
		let held = s.spawn(|| value.read()).join().unwrap();
		let updater = s.spawn(|| value.swap(6));
		thread::sleep(Duration::from_millis(20));
		assert!(!updater.is_finished());
		assert_eq!(*held, 5);
		drop(held);
		assert_eq!(updater.join().unwrap(), 5);
	});
	assert_eq!(count.load(SeqCst), 0);
}

#[test]
fn srcu_sections_may_change_threads_and_nest() {
	let domain = Srcu::new();
	let (outer, inner) = (domain.read(), domain.read());
	let cookie = domain.start();
	assert!(!domain.is_complete(cookie));
	drop(outer);
	thread::scope(|s| s.spawn(move || drop(inner)).join().unwrap());
	domain.synchronize();
	assert!(domain.is_complete(cookie));
	let other = Srcu::default();
	let _section = other.read();
	domain.synchronize();
}

#[test]
fn locks_exclude_and_are_released() {
	let lock = PercpuRwLock::new(vec![1]);
	let (a, b) = (lock.read(), lock.try_read().unwrap());
	assert!(lock.is_locked() && lock.try_write().is_none());
	drop((a, b));
	let mut writer = lock.try_write_for(Duration::from_secs(10)).unwrap();
	writer.push(2);
	assert!(lock.try_read().is_none() && lock.try_write().is_none());
	assert!(lock.try_read_for(Duration::from_millis(1)).is_none());
	drop(writer);
	assert!(catch_unwind(AssertUnwindSafe(|| {
		let _writer = lock.write();
		panic!("on purpose");
	}))
	.is_err());
	assert_eq!(lock.into_inner(), [1, 2]);
}

#[test]
fn values_whose_guards_are_leaked_may_be_dropped() {
	let lock = PercpuRwLock::new(1);
	std::mem::forget(lock.read());
	drop(lock);
	let lock = PercpuRwLock::new(1);
	std::mem::forget(lock.write());
	drop(lock);
	let users = PercpuRef::new(|| unreachable!("a reference was leaked"));
	std::mem::forget(users.try_get());
	drop(users);
	let switch = RcuSync::new();
	std::mem::forget(switch.enter());
	drop(switch);
	let cell = HazardCell::new(1);
	cell.load(Box::leak(Box::new(HazardPointer::new())));
	drop(cell);
}

#[test]
fn guards_of_locks_may_change_threads() {
	let lock = PercpuRwLock::new(1);
	thread::scope(|s| {
		let (send, receive) = mpsc::channel();
		s.spawn({
			let lock = &lock;
			move || send.send((lock.read(), lock.read())).unwrap()
		});
		drop(receive.recv().unwrap());
		let mut writer = lock.write();
		s.spawn(move || *writer = 2).join().unwrap();
	});
	assert_eq!(*lock.read(), 2);
}

#[test]
fn the_release_of_a_count_runs_once_after_the_last_user() {
	let (count, make) = counter();
	let released = make();
	let users = PercpuRef::new(move || drop(released));
	thread::scope(|s| {
		for _ in 0..4 {
			s.spawn(|| {
				let mut held = Vec::new();
				while let Some(user) = users.try_get_live() {
					held.push(user);
					if held.len() > 100 {
						held.clear();
						thread::yield_now();
					}
				}
				assert!(held.is_empty() || !users.is_zero());
			});
		}
		thread::sleep(Duration::from_millis(20));
		users.kill();
		users.kill();
		assert!(users.is_dying() && users.try_get_live().is_none());
	});
	assert!(users.is_zero() && users.try_get().is_none());
	assert_eq!(count.load(SeqCst), 1);
	drop(users);
	let released = make();
	drop(PercpuRef::new(move || drop(released)));
	assert_eq!(count.load(SeqCst), 2);
}

#[test]
fn maps_count_in_several_threads() {
	let map: HashMap<u32, u32> = HashMap::with_capacity(10).unwrap();
	thread::scope(|s| {
		for _ in 0..4 {
			s.spawn(|| {
				for i in 0..4000 {
					map.update(i % 1000, |n| n.unwrap_or(0) + 1).unwrap();
				}
			});
		}
	});
	assert_eq!(map.len(), 1000);
	let section = rcu::read();
	assert_eq!(map.iter(&section).map(|(_, n)| n).sum::<u32>(), 16000);
	let mut keys: Vec<u64> = map.iter(&section).map(|(key, _)| key).collect();
	keys.sort_unstable();
	assert!(keys.into_iter().eq(0..1000));
	map.clear();
	assert!(map.is_empty() && map.get(1).is_none());
}

#[test]
fn small_numbers_keep_their_values_in_maps() {
	let map: HashMap<u8, i32> = HashMap::new();
	for value in [0, 1, -1, i32::MIN, i32::MAX] {
		map.insert(1, value).unwrap();
		assert_eq!(map.get(1), Some(value));
		assert!(map.compare_exchange(1, value, value) && map.remove_value(1, value));
		assert!(!map.contains_key(1));
	}
}

#[test]
fn types_may_be_shared_or_not() {
	let (cell, hazard_cell) = (RcuCell::new(1), HazardCell::new(1));
	is_sync(&cell);
	is_send(&hazard_cell);
	let lock = PercpuRwLock::new(std::cell::Cell::new(1));
	is_send(&lock);
	let value = Waited::new(std::cell::Cell::new(1));
	is_send(&value);
	is_sync(&Srcu::new());
	is_send(&HazardPointer::new());
}

#[test]
fn values_print() {
	let guard = rcu::read();
	let text = format!(
		"{:?} {:?} {:?} {:?} {:?} {:?}",
		guard,
		RcuCell::new(1),
		HazardCell::new(2),
		Waited::new(3),
		PercpuRwLock::new(4),
		SrcuCell::new(5)
	);
	assert_eq!(text, "Guard RcuCell(1) HazardCell(2) Waited(3) PercpuRwLock(4) SrcuCell(5)");
}
