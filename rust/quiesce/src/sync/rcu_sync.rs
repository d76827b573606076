// SPDX-License-Identifier: MIT
//! A switch that makes the readers of RCU take a slow path, while an updater needs it.

use super::ending::elsewhere;
use super::lazy::Lazy;
use crate::object::in_callback;
use crate::rcu::Guard;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use quiesce_sys as sys;

/// Readers in sections of RCU take a fast path while no updater is inside, and test that by one load.
///
/// The first updater of a burst waits for a grace period; the readers are fast again a grace period after the last one has left.
///
/// ```
/// use quiesce::{rcu, sync::RcuSync};
///
/// static SWITCH: RcuSync = RcuSync::new();
/// assert!(SWITCH.is_idle(&rcu::read()));
/// let slow = SWITCH.enter();
/// assert!(!SWITCH.is_idle(&rcu::read()));
/// drop(slow);
/// ```
pub struct RcuSync {
	switch: Lazy<sys::rcu_sync>,
	inside: AtomicUsize,
}

// SAFETY: all calls may be made by any thread.
unsafe impl Send for RcuSync {}
// SAFETY: as above.
unsafe impl Sync for RcuSync {}

fn make() -> Box<sys::rcu_sync> {
	// SAFETY: the structure has no invalid value.
	let mut switch: Box<sys::rcu_sync> = Box::new(unsafe { core::mem::zeroed() });
	// SAFETY: the box's memory, which no other thread has.
	unsafe { sys::quiesce_rcu_sync_init(&mut *switch, core::ptr::null(), core::ptr::null_mut()) };
	switch
}

/// A switch without an updater inside, which no thread uses any more.
struct Ending(Box<sys::rcu_sync>);

// SAFETY: any thread may end a switch.
unsafe impl Send for Ending {}

impl Ending {
	fn is_idle(&self) -> bool {
		// SAFETY: an initialised switch.
		unsafe { sys::quiesce_rcu_sync_is_idle(&*self.0) }
	}

	/// Waits for a grace period unless the switch is idle.
	fn end(mut self) {
		// SAFETY: no updater is inside, and no thread uses it any more.
		unsafe { sys::quiesce_rcu_sync_dtor(&mut *self.0) }
	}
}

fn end(switch: Box<sys::rcu_sync>) {
	Ending(switch).end();
}

impl RcuSync {
	/// Make a switch; its state is allocated at its first use.
	pub const fn new() -> RcuSync {
		RcuSync { switch: Lazy::new(), inside: AtomicUsize::new(0) }
	}

	fn place(&self) -> *mut sys::rcu_sync {
		self.switch.get(make, end)
	}

	/// Whether a reader may take its fast path: no updater is inside, and none gets in before the section of the guard ends.
	#[inline]
	pub fn is_idle(&self, _section: &Guard) -> bool {
		// SAFETY: an initialised switch.
		unsafe { sys::quiesce_rcu_sync_is_idle(self.place()) }
	}

	/// Make readers take their slow path, until the value is dropped.
	///
	/// # Panics
	/// In a section of RCU.
	#[track_caller]
	pub fn enter(&self) -> SlowReaders<'_> {
		assert!(!crate::fast::in_section(), "RcuSync::enter() in a section of RCU would wait for itself");
		// Relaxed: read when the switch is dropped.
		self.inside.fetch_add(1, Ordering::Relaxed);
		if !cfg!(quiesce_control) {
			// SAFETY: an initialised switch, not in a section.
			unsafe { sys::quiesce_rcu_sync_enter(self.place()) }
		}
		SlowReaders { switch: self }
	}
}

impl Default for RcuSync {
	fn default() -> RcuSync {
		RcuSync::new()
	}
}

impl Drop for RcuSync {
	/// Waits for a pending grace period; but in a section, or in a deferred call or destructor, another thread waits. A switch of which a
	/// [`SlowReaders`] was leaked is leaked.
	fn drop(&mut self) {
		if let Some(switch) = self.switch.take().map(Ending) {
			if *self.inside.get_mut() != 0 {
				core::mem::forget(switch);
			} else if !switch.is_idle() && (in_callback() || crate::fast::in_section()) {
				elsewhere(move || switch.end());
			} else {
				switch.end();
			}
		}
	}
}

impl fmt::Debug for RcuSync {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("RcuSync")
	}
}

/// An updater inside: [`RcuSync::enter()`]. It may be sent to another thread.
#[must_use = "readers become fast where the value is dropped"]
pub struct SlowReaders<'a> {
	switch: &'a RcuSync,
}

impl Drop for SlowReaders<'_> {
	fn drop(&mut self) {
		if !cfg!(quiesce_control) {
			// SAFETY: an enter of this switch, which is left once.
			unsafe { sys::quiesce_rcu_sync_exit(self.switch.place()) }
		}
		// Relaxed: as above.
		self.switch.inside.fetch_sub(1, Ordering::Relaxed);
	}
}

impl fmt::Debug for SlowReaders<'_> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("SlowReaders")
	}
}
