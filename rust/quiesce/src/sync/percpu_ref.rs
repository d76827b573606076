// SPDX-License-Identifier: MIT
//! A reference count that costs no shared store until its value is needed.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use quiesce_sys as sys;

/// A count of the users of something that ends once: each operation takes a reference for its duration, in memory of its CPU.
///
/// The owner kills the count; from then on there are no new users, and a function runs when the last one has gone.
///
/// ```
/// use quiesce::sync::PercpuRef;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static UNUSED: AtomicBool = AtomicBool::new(false);
/// let users = PercpuRef::new(|| UNUSED.store(true, Ordering::Release));
/// let user = users.try_get_live().unwrap();
/// users.kill();
/// assert!(users.try_get_live().is_none() && !UNUSED.load(Ordering::Acquire));
/// drop(user);
/// assert!(UNUSED.load(Ordering::Acquire) && users.is_zero());
/// ```
///
/// A count that is dropped is killed before, so the function runs in any case, unless a reference was leaked.
pub struct PercpuRef {
	counted: NonNull<Counted>, // a box
	killed: AtomicBool,
}

#[repr(C)]
struct Counted {
	count: sys::percpu_ref, // first: release() gets its address
	function: Option<Box<dyn FnOnce() + Send>>,
}

// SAFETY: the count is for all threads, and the function is called once, by the thread that puts the last reference.
unsafe impl Send for PercpuRef {}
// SAFETY: as above.
unsafe impl Sync for PercpuRef {}

unsafe extern "C" fn release(count: *mut sys::percpu_ref) {
	let counted = count as *mut Counted;
	// SAFETY: the count is the first field. The library calls this once, as a count that was killed is never revived here.
	let function = unsafe { (*counted).function.take() };
	crate::object::without_unwinding(|| {
		if let Some(function) = function {
			function()
		}
	});
}

impl PercpuRef {
	/// Make a count with the owner's reference. The function runs in the thread that puts the last reference; it must not panic.
	pub fn new<F: FnOnce() + Send + 'static>(function: F) -> PercpuRef {
		// SAFETY: the structure of the library has no invalid value, and is initialised below.
		let counted = Counted { count: unsafe { core::mem::zeroed() }, function: Some(Box::new(function)) };
		let counted = NonNull::from(Box::leak(Box::new(counted)));
		let users = PercpuRef { counted, killed: AtomicBool::new(false) };
		// SAFETY: the box's memory, which no other thread has. Without memory for counters the count works.
		unsafe { sys::quiesce_percpu_ref_init(sys::QUIESCE_LAYOUT, users.count(), Some(release), 0) };
		users
	}

	#[inline(always)]
	fn count(&self) -> *mut sys::percpu_ref {
		self.counted.as_ptr().cast()
	}

	/// Take a reference, unless the count was killed.
	#[inline]
	pub fn try_get_live(&self) -> Option<Reference<'_>> {
		// SAFETY: an initialised count.
		unsafe { sys::quiesce_percpu_ref_tryget_live(self.count()) }.then(|| Reference { users: self })
	}

	/// Take a reference, unless there is none left; a count that was killed has some while users are inside.
	///
	/// ```
	/// # use quiesce::sync::PercpuRef;
	/// let users = PercpuRef::new(|| ());
	/// let user = users.try_get().unwrap();
	/// users.kill();
	/// assert!(users.try_get().is_some());
	/// # drop(user);
	/// ```
	#[inline]
	pub fn try_get(&self) -> Option<Reference<'_>> {
		// SAFETY: an initialised count.
		unsafe { sys::quiesce_percpu_ref_tryget(self.count()) }.then(|| Reference { users: self })
	}

	/// Admit no new users, and put the owner's reference; a second call does nothing.
	pub fn kill(&self) {
		if !self.killed.swap(true, Ordering::AcqRel) {
			// SAFETY: an initialised count, which is killed once.
			unsafe { sys::quiesce_percpu_ref_kill(self.count()) }
		}
	}

	/// Whether the count was killed.
	///
	/// ```
	/// assert!(!quiesce::sync::PercpuRef::new(|| ()).is_dying());
	/// ```
	pub fn is_dying(&self) -> bool {
		// SAFETY: an initialised count.
		unsafe { sys::quiesce_percpu_ref_is_dying(self.count()) }
	}

	/// Whether it was killed and the last reference has been put.
	pub fn is_zero(&self) -> bool {
		// SAFETY: an initialised count.
		unsafe { sys::quiesce_percpu_ref_is_zero(self.count()) }
	}
}

impl Drop for PercpuRef {
	fn drop(&mut self) {
		self.kill();
		// With a reference that was leaked the count stays, and so does its function.
		if self.is_zero() {
			// SAFETY: there are no references, and references borrow the count, so no put is in progress. new() has leaked the box.
			unsafe {
				sys::quiesce_percpu_ref_exit(self.count());
				drop(Box::from_raw(self.counted.as_ptr()));
			}
		}
	}
}

impl fmt::Debug for PercpuRef {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_struct("PercpuRef").field("dying", &self.is_dying()).finish()
	}
}

/// A reference that a user has: [`PercpuRef::try_get_live()`]. It may be sent to another thread.
#[must_use = "the reference is put where the value is dropped"]
pub struct Reference<'a> {
	users: &'a PercpuRef,
}

impl Drop for Reference<'_> {
	#[inline]
	fn drop(&mut self) {
		// SAFETY: the reference is put once.
		unsafe { sys::quiesce_percpu_ref_put(self.users.count()) }
	}
}

impl fmt::Debug for Reference<'_> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("Reference")
	}
}
