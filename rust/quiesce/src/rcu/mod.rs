// SPDX-License-Identifier: MIT
//! Read-copy update: readers without fences, updaters that wait for all of them.
//!
//! A reader is in a *section*; an updater replaces an object, and destroys the old one after a *grace period*, when every section that was
//! open at the replacement has ended. To enter and leave a section takes a few instructions, without a fence, a locked instruction or a
//! shared store.
//!
//! - [`RcuCell`]: a value that is read much and replaced rarely. No `unsafe`.
//! - [`section()`], [`Section`]: one section around several reads.
//! - [`Atomic`], [`Owned`], [`Shared`], [`read()`], [`Guard`]: pointers for data structures, in the form of crossbeam-epoch.
//! - [`synchronize()`], [`barrier()`], [`Cookie`]: waits.
//!
//! A section that lasts delays every updater of the process. Where readers sleep, [`crate::sync::Srcu`] or [`crate::hazard`] is better.

mod atomic;
mod cell;
mod cookie;
mod guard;

pub use atomic::{Atomic, CompareExchangeError, Owned, Pointer, Shared};
pub use cell::RcuCell;
pub use cookie::Cookie;
pub use guard::{pin, read, section, unprotected, Guard, Section};

use crate::fast::in_section;
use quiesce_sys as sys;

#[track_caller]
fn require_outside(call: &str) {
	assert!(!in_section(), "{call} in a section of RCU would wait for itself");
}

/// Wait until every section that is now open has ended.
///
/// Concurrent callers share grace periods.
///
/// # Panics
/// In a section, which the call would wait for.
///
/// ```
/// quiesce::rcu::synchronize();
/// ```
#[track_caller]
pub fn synchronize() {
	require_outside("synchronize()");
	if !cfg!(quiesce_control) {
		// SAFETY: not in a section.
		unsafe { sys::quiesce_synchronize_rcu() }
	}
}

/// [`synchronize()`] with a shorter wait, at the expense of readers: those yield that keep the CPU from a reader that is waited for.
///
/// # Panics
/// As `synchronize()`.
///
/// ```
/// quiesce::rcu::synchronize_expedited();
/// ```
#[track_caller]
pub fn synchronize_expedited() {
	require_outside("synchronize_expedited()");
	if !cfg!(quiesce_control) {
		// SAFETY: not in a section.
		unsafe { sys::quiesce_synchronize_rcu_expedited() }
	}
}

/// Wait until everything that was deferred before the call has been done.
///
/// It is not a grace period: it returns at once if nothing is deferred. Never called by a deferred function or destructor: the library
/// reports that, and the process aborts.
///
/// # Panics
/// In a section.
///
/// ```
/// use quiesce::rcu;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static DONE: AtomicBool = AtomicBool::new(false);
/// rcu::defer(|| DONE.store(true, Ordering::Release));
/// rcu::barrier();
/// assert!(DONE.load(Ordering::Acquire));
/// ```
#[track_caller]
pub fn barrier() {
	require_outside("barrier()");
	// SAFETY: not in a section.
	unsafe { sys::quiesce_rcu_barrier() }
}

/// Call a function after a grace period, in a thread of the library.
///
/// The function must not panic: the process aborts. It may defer further calls, and may wait for readers, but not for other deferred calls:
/// [`barrier()`], [`crate::hazard::barrier()`], its `try_barrier()`, and [`crate::sync::Srcu::barrier()`] abort the process.
///
/// ```
/// quiesce::rcu::defer(|| println!("all readers of before have left"));
/// ```
pub fn defer<F: FnOnce() + Send + 'static>(function: F) {
	// SAFETY: it may be called anywhere and at any time.
	unsafe { crate::object::Object::call_rcu(crate::object::Object::new(function)) }
}

/// Wait while the process has more garbage than its ceiling.
///
/// Programs that retire faster than their readers leave call it regularly, where they hold no lock.
///
/// # Panics
/// In a section.
///
/// ```
/// quiesce::rcu::throttle();
/// ```
#[track_caller]
pub fn throttle() {
	require_outside("throttle()");
	// SAFETY: not in a section.
	unsafe { sys::quiesce_rcu_throttle() }
}
