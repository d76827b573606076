// SPDX-License-Identifier: MIT
//! Readers and updaters of this crate beside those of others: nanoseconds for each, or a number of operations for a counter of instructions.
//!
//!     readers [--threads=N] [NAME...]     nanoseconds: the median of nine windows, and the least
//!     readers --list
//!     readers --count=N NAME              do N operations, for valgrind --tool=none or callgrind
//!
//! A reader finds an object and reads a number in it. An updater replaces the object, and leaves the old one to be destroyed.

use quiesce::{hazard, rcu, shazptr, sync};
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering::*};
use std::sync::{Arc, Barrier, RwLock};
use std::time::{Duration, Instant};

/// Runs an operation a number of times.
type Loop = Box<dyn Fn(u64) + Send + Sync>;

fn repeat(operation: impl Fn() + Send + Sync + 'static) -> Loop {
	Box::new(move |n| {
		for _ in 0..n {
			operation();
		}
	})
}

/// Use a number.
fn see(number: u64) {
	black_box(number);
}

/// An object with a number, and a destructor if it is to be destroyed by a call.
struct Dropped(u64);

impl Drop for Dropped {
	fn drop(&mut self) {
		black_box(self.0);
	}
}

fn quiesce_readers(list: &mut Vec<(&'static str, Loop)>) {
	let cell = rcu::RcuCell::new(7u64);
	list.push(("read_rcu_cell", repeat(move || cell.read(|n| see(*n)))));
	let atomic = rcu::Atomic::new(7u64);
	list.push((
		"read_rcu_guard",
		repeat(move || {
			let guard = rcu::read();
			// SAFETY: never retired.
			black_box(unsafe { *atomic.load(Acquire, &guard).deref() });
		}),
	));
	let pointer = AtomicPtr::new(Box::into_raw(Box::new(7u64)));
	list.push((
		"read_rcu_calls",
		repeat(move || {
			// SAFETY: a section, and an object that is never freed.
			unsafe {
				quiesce_sys::quiesce_rcu_read_lock();
				black_box(*pointer.load(Acquire));
				quiesce_sys::quiesce_rcu_read_unlock();
			}
		}),
	));
	let cell = hazard::HazardCell::new(7u64);
	list.push((
		"read_hazard_kept",
		Box::new(move |n| {
			let mut slot = hazard::HazardPointer::new();
			for _ in 0..n {
				black_box(*cell.load(&mut slot));
			}
		}),
	));
	let cell = hazard::HazardCell::new(7u64);
	list.push(("read_hazard_cell", repeat(move || cell.read(|n| see(*n)))));
	let value = shazptr::Waited::new(7u64);
	list.push(("read_shazptr", repeat(move || see(*value.read()))));
	let cell = sync::SrcuCell::new(7u64);
	list.push(("read_srcu_cell", repeat(move || see(*cell.read()))));
	let lock = sync::PercpuRwLock::new(7u64);
	list.push(("read_percpu_rwlock", repeat(move || see(*lock.read()))));
}

fn peer_readers(list: &mut Vec<(&'static str, Loop)>) {
	let pointer = AtomicPtr::new(Box::into_raw(Box::new(7u64)));
	// SAFETY: never freed.
	list.push(("read_plain_load", repeat(move || see(unsafe { *pointer.load(Acquire) }))));
	let atomic = crossbeam_epoch::Atomic::new(7u64);
	list.push((
		"read_crossbeam_epoch",
		repeat(move || {
			let guard = crossbeam_epoch::pin();
			// SAFETY: never retired.
			black_box(unsafe { *atomic.load(Acquire, &guard).deref() });
		}),
	));
	let swap = arc_swap::ArcSwap::from_pointee(7u64);
	list.push(("read_arc_swap", repeat(move || see(**swap.load()))));
	let pointer = haphazard::AtomicPtr::from(Box::new(7u64));
	list.push((
		"read_haphazard_kept",
		Box::new(move |n| {
			let mut slot = haphazard::HazardPointer::new();
			for _ in 0..n {
				// SAFETY: never retired.
				black_box(*unsafe { pointer.load(&mut slot) }.expect("an object"));
				slot.reset_protection();
			}
		}),
	));
	let (collector, pointer) = (seize::Collector::new(), AtomicPtr::new(Box::into_raw(Box::new(7u64))));
	list.push((
		"read_seize",
		repeat(move || {
			use seize::Guard;
			let guard = collector.enter();
			// SAFETY: never freed.
			black_box(unsafe { *guard.protect(&pointer, Acquire) });
		}),
	));
	let lock = parking_lot::RwLock::new(7u64);
	list.push(("read_parking_lot", repeat(move || see(*lock.read()))));
	let lock = RwLock::new(7u64);
	list.push(("read_std_rwlock", repeat(move || see(*lock.read().expect("not poisoned")))));
}

fn updaters(list: &mut Vec<(&'static str, Loop)>) {
	let cell = rcu::RcuCell::new(7u64);
	list.push(("retire_rcu_cell", repeat(move || cell.replace(8))));
	let cell = rcu::RcuCell::new(Dropped(7));
	list.push(("retire_rcu_cell_drop", repeat(move || cell.replace(Dropped(8)))));
	let cell = hazard::HazardCell::new(7u64);
	list.push(("retire_hazard_cell", repeat(move || cell.replace(8))));
	let atomic = crossbeam_epoch::Atomic::new(7u64);
	list.push((
		"retire_crossbeam_epoch",
		repeat(move || {
			let guard = crossbeam_epoch::pin();
			let old = atomic.swap(crossbeam_epoch::Owned::new(8), AcqRel, &guard);
			// SAFETY: unlinked by this thread.
			unsafe { guard.defer_destroy(old) };
		}),
	));
	let swap = arc_swap::ArcSwap::from_pointee(7u64);
	list.push(("retire_arc_swap", repeat(move || swap.store(Arc::new(8)))));
	let pointer = haphazard::AtomicPtr::from(Box::new(7u64));
	list.push((
		"retire_haphazard",
		repeat(move || {
			if let Some(old) = pointer.swap(Box::new(8)) {
				// SAFETY: unlinked by this thread.
				unsafe { old.retire() };
			}
		}),
	));
	let lock = sync::PercpuRwLock::new(7u64);
	list.push(("write_percpu_rwlock", repeat(move || *lock.write() += 1)));
	let lock = parking_lot::RwLock::new(7u64);
	list.push(("write_parking_lot", repeat(move || *lock.write() += 1)));
}

/// Nanoseconds for an operation of one thread, while `threads` do it at once.
fn window(operation: &Loop, threads: usize, n: u64) -> f64 {
	let start = Barrier::new(threads);
	let times: Vec<Duration> = std::thread::scope(|s| {
		let team: Vec<_> = (0..threads)
			.map(|_| {
				s.spawn(|| {
					start.wait();
					let began = Instant::now();
					operation(n);
					began.elapsed()
				})
			})
			.collect();
		team.into_iter().map(|thread| thread.join().expect("no panic")).collect()
	});
	times.iter().map(Duration::as_nanos).sum::<u128>() as f64 / threads as f64 / n as f64
}

fn measure(name: &str, operation: &Loop, threads: usize) {
	let mut n = 1000;
	while window(operation, threads, n) * (n as f64) < 2e6 {
		n *= 2;
	}
	let mut found: Vec<f64> = (0..9).map(|_| window(operation, threads, n * 5)).collect();
	found.sort_by(f64::total_cmp);
	println!("{name:24} {:9.2} ns   least {:9.2}", found[4], found[0]);
}

fn main() {
	let (mut threads, mut count, mut names) = (1, None, Vec::new());
	let mut list = Vec::new();
	peer_readers(&mut list);
	quiesce_readers(&mut list);
	updaters(&mut list);
	for argument in std::env::args().skip(1) {
		if let Some(value) = argument.strip_prefix("--threads=") {
			threads = value.parse().expect("a number of threads");
		} else if let Some(value) = argument.strip_prefix("--count=") {
			count = Some(value.parse().expect("a number of operations"));
		} else if argument == "--list" {
			list.iter().for_each(|(name, _)| println!("{name}"));
			return;
		} else {
			assert!(list.iter().any(|(name, _)| *name == argument), "{argument}: see --list");
			names.push(argument);
		}
	}
	for (name, operation) in list.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name)) {
		match count {
			Some(n) => operation(n),
			None => measure(name, operation, threads),
		}
	}
}
