// SPDX-License-Identifier: MIT
//! Readers beside updaters, for a time. With `RUSTFLAGS="--cfg quiesce_control"` nothing waits for readers, and each of these tests has to fail:
//! `scripts/ci/rust.sh` runs them so, too.

use quiesce::rcu::{self, Atomic, Cookie, Owned, RcuCell};
use quiesce::{hazard, shazptr, sync};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

const ALIVE: u64 = 0x616c697665;
const READERS: usize = 3;
#[allow(clippy::declare_interior_mutable_const)]
const ALIVE_STATE: AtomicU64 = AtomicU64::new(ALIVE);

/// An object that shows that it was dropped, for a while.
struct Checked {
	state: AtomicU64,
	serial: u64,
}

impl Checked {
	fn new(serial: u64) -> Checked {
		Checked { state: AtomicU64::new(ALIVE), serial }
	}

	/// Check it twice, with another thread in between.
	fn check(&self) {
		let serial = self.serial;
		assert_eq!(self.state.load(SeqCst), ALIVE, "an object was dropped in front of its reader");
		thread::yield_now();
		assert_eq!(self.state.load(SeqCst), ALIVE, "an object was dropped under its reader");
		// SAFETY: a field of a live object; volatile, as the compiler would not load it again.
		assert_eq!(
			unsafe { std::ptr::addr_of!(self.serial).read_volatile() },
			serial,
			"an object was replaced under its reader"
		);
	}
}

impl Drop for Checked {
	fn drop(&mut self) {
		self.state.store(0, SeqCst);
	}
}

/// Run readers beside an updater; both must have worked.
fn run(read: impl Fn() + Sync, mut update: impl FnMut(u64)) {
	let (stop, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
	let until = Instant::now() + Duration::from_millis(400);
	thread::scope(|s| {
		let readers: Vec<_> = (0..READERS)
			.map(|_| {
				s.spawn(|| {
					while !stop.load(Relaxed) {
						read();
						reads.fetch_add(1, Relaxed);
					}
				})
			})
			.collect();
		let mut updates = 0;
		while Instant::now() < until || updates < 20 || reads.load(Relaxed) < 100 {
			updates += 1;
			update(updates);
			if readers.iter().any(|reader| reader.is_finished()) {
				break; // it has failed
			}
			thread::yield_now();
		}
		stop.store(true, Relaxed);
	});
}

#[test]
fn rcu_cell_replace() {
	let cell = RcuCell::new(Checked::new(0));
	run(|| cell.read(Checked::check), |n| cell.replace(Checked::new(n)));
}

#[test]
fn rcu_cell_update() {
	let cell = RcuCell::new(Checked::new(0));
	run(|| rcu::section(|section| cell.get(section).check()), |_| cell.update(|old| Checked::new(old.serial + 1)));
}

/// A mark that stays when the cell that holds its address does not.
type Mark = &'static AtomicU64;

fn marks() -> &'static [AtomicU64; 64] {
	Box::leak(Box::new([ALIVE_STATE; 64]))
}

fn check_mark(mark: &Mark) {
	let mark = *mark;
	assert_eq!(mark.load(SeqCst), ALIVE, "a value came back in front of its reader");
	thread::yield_now();
	assert_eq!(mark.load(SeqCst), ALIVE, "a value came back before its readers had left");
}

/// An updater gets the old value back, and marks it.
fn run_swap(read: impl Fn() + Sync, marks: &'static [AtomicU64; 64], swap: impl Fn(Mark) -> Mark) {
	run(read, |n| {
		let next = &marks[n as usize % 64];
		next.store(ALIVE, SeqCst);
		swap(next).store(0, SeqCst);
	});
}

#[test]
fn rcu_cell_swap() {
	let marks = marks();
	let cell = RcuCell::new(&marks[0]);
	run_swap(|| cell.read(check_mark), marks, |next| cell.swap(next));
}

#[test]
fn rcu_defer_destroy() {
	let pointer = Atomic::new(Checked::new(0));
	let read = || {
		let guard = rcu::pin();
		// SAFETY: loaded in this section from a pointer whose objects are retired after they have been replaced.
		unsafe { pointer.load(Acquire, &guard).deref() }.check();
	};
	run(read, |n| {
		let guard = rcu::pin();
		let old = pointer.swap(Owned::new(Checked::new(n)), AcqRel, &guard);
		// SAFETY: this thread has unlinked it.
		unsafe { guard.defer_destroy(old) };
	});
	// SAFETY: no other thread has it any more.
	drop(unsafe { pointer.into_owned() });
}

/// Objects that are never freed, but marked, so that the control's failure is none of memory.
#[test]
fn rcu_defer() {
	static STATES: [AtomicU64; 64] = [ALIVE_STATE; 64];
	let current = AtomicUsize::new(0);
	let read = || {
		let _guard = rcu::read();
		let state = &STATES[current.load(Acquire)];
		assert_eq!(state.load(SeqCst), ALIVE);
		thread::yield_now();
		assert_eq!(state.load(SeqCst), ALIVE, "a function was called before the readers had left");
	};
	run(read, |n| {
		let next = n as usize % 64;
		rcu::barrier();
		STATES[next].store(ALIVE, SeqCst);
		let old = current.swap(next, AcqRel);
		rcu::defer(move || STATES[old].store(0, SeqCst));
	});
}

#[test]
fn rcu_cookie() {
	let states = [ALIVE_STATE; 2];
	let current = AtomicUsize::new(0);
	let read = || {
		let _guard = rcu::read();
		let state = &states[current.load(Acquire)];
		assert_eq!(state.load(SeqCst), ALIVE);
		thread::yield_now();
		assert_eq!(state.load(SeqCst), ALIVE, "a cookie completed before the readers had left");
	};
	run(read, |n| {
		let (old, next) = ((n + 1) as usize % 2, n as usize % 2);
		states[next].store(ALIVE, SeqCst);
		current.store(next, Release);
		let cookie = Cookie::start();
		if n % 2 == 0 {
			cookie.wait();
		}
		while !cookie.is_complete() {
			thread::yield_now();
		}
		states[old].store(0, SeqCst);
	});
}

#[test]
fn hazard_cell() {
	let cell = hazard::HazardCell::new(Checked::new(0));
	let read = || {
		let mut slot = hazard::HazardPointer::new();
		cell.load(&mut slot).check();
		cell.load(&mut slot).check();
	};
	run(read, |n| cell.replace(Checked::new(n)));
}

#[test]
fn hazard_cell_update() {
	let cell = hazard::HazardCell::new(Checked::new(0));
	run(|| cell.read(Checked::check), |_| cell.update(|old| Checked::new(old.serial + 1)));
}

#[test]
fn shazptr_swap() {
	let marks = marks();
	let value = shazptr::Waited::new(&marks[0]);
	run_swap(|| check_mark(&value.read()), marks, |next| value.swap(next));
}

#[test]
fn srcu_cell_replace() {
	let cell = sync::SrcuCell::new(Checked::new(0));
	run(|| cell.read().check(), |n| cell.replace(Checked::new(n)));
}

#[test]
fn srcu_cell_swap() {
	let marks = marks();
	let cell = sync::SrcuCell::new(&marks[0]);
	run_swap(|| check_mark(&cell.read()), marks, |next| cell.swap(next));
}

#[test]
fn percpu_rwlock() {
	// Atomic, so that the control's failure is no data race.
	let lock = sync::PercpuRwLock::new((AtomicU64::new(0), AtomicU64::new(0)));
	let read = || {
		let pair = lock.read();
		assert_eq!(pair.0.load(SeqCst), pair.1.load(SeqCst), "a reader is beside a writer");
	};
	run(read, |n| {
		let pair = lock.write();
		pair.0.store(n, SeqCst);
		thread::yield_now();
		pair.1.store(n, SeqCst);
	});
}

#[test]
fn rcu_sync() {
	let switch = sync::RcuSync::new();
	let updating = AtomicBool::new(false);
	let read = || {
		let guard = rcu::read();
		if switch.is_idle(&guard) {
			assert!(!updating.load(SeqCst), "an updater is inside, and the switch is idle");
			thread::yield_now();
			assert!(!updating.load(SeqCst), "an updater came in beside a fast reader");
		}
	};
	run(read, |n| {
		let slow = switch.enter();
		updating.store(true, SeqCst);
		thread::yield_now();
		updating.store(false, SeqCst);
		drop(slow);
		if n % 4 == 0 {
			rcu::barrier(); // the switch is idle again
		}
	});
}
