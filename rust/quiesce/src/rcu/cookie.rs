// SPDX-License-Identifier: MIT
//! Polled grace periods.

use quiesce_sys as sys;

/// A point in the sequence of grace periods, of which any thread may test whether it has passed.
///
/// ```
/// use quiesce::rcu::Cookie;
///
/// let cookie = Cookie::start();
/// // Unlink an object before, do something else here, and free the object when the cookie has completed.
/// cookie.wait();
/// assert!(cookie.is_complete());
/// ```
#[derive(Clone, Copy)]
pub struct Cookie(sys::rcu_gp_seq);

impl Cookie {
	/// Return a cookie for the grace period that would begin now; it starts none.
	///
	/// ```
	/// # use quiesce::rcu::{synchronize, Cookie};
	/// let cookie = Cookie::current();
	/// synchronize();
	/// assert!(cookie.is_complete());
	/// ```
	pub fn current() -> Cookie {
		// SAFETY: no condition.
		Cookie(unsafe { sys::quiesce_get_state_synchronize_rcu() })
	}

	/// Return a cookie, and start a grace period that will complete it.
	pub fn start() -> Cookie {
		// SAFETY: no condition.
		Cookie(unsafe { sys::quiesce_start_poll_synchronize_rcu() })
	}

	/// Test whether the grace period has completed; never waits for readers.
	pub fn is_complete(&self) -> bool {
		// SAFETY: no condition.
		cfg!(quiesce_control) || unsafe { sys::quiesce_poll_state_synchronize_rcu(self.0) != 0 }
	}

	/// Wait for the grace period, unless it has completed.
	///
	/// # Panics
	/// In a section.
	#[track_caller]
	pub fn wait(&self) {
		super::require_outside("Cookie::wait()");
		if !cfg!(quiesce_control) {
			// SAFETY: not in a section.
			unsafe { sys::quiesce_cond_synchronize_rcu(self.0) }
		}
	}
}

impl PartialEq for Cookie {
	fn eq(&self, other: &Cookie) -> bool {
		self.0.value == other.0.value
	}
}

impl Eq for Cookie {}

impl core::fmt::Debug for Cookie {
	fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
		f.debug_tuple("Cookie").field(&self.0.value).finish()
	}
}
