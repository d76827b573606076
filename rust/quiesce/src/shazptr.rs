// SPDX-License-Identifier: MIT
//! Simple hazard pointers: an updater waits for the readers of one object, and disturbs no other thread.
//!
//! [`Waited`] is a value that readers protect, and that an updater replaces and gets back when the readers of the old one have left. The
//! wait is some microseconds if there are none, whatever other readers of the process do.

use crate::object::Object;
use core::ffi::c_void;
use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicPtr, Ordering};
use quiesce_sys as sys;

/// A value that readers protect, and whose updater waits for those of the old value alone.
///
/// ```
/// use quiesce::shazptr::Waited;
///
/// let config = Waited::new(String::from("a"));
/// {
/// 	let reader = config.read();
/// 	assert_eq!(*reader, "a");
/// }
/// let old = config.swap(String::from("b"));
/// assert_eq!(old, "a");
/// ```
pub struct Waited<T> {
	object: AtomicPtr<Object<T>>,
	_owns: core::marker::PhantomData<T>,
}

// SAFETY: threads get references to the value (T: Sync), and values that others have stored (T: Send).
unsafe impl<T: Send + Sync> Sync for Waited<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Waited<T> {}

impl<T> Waited<T> {
	/// Make one with a value.
	pub fn new(value: T) -> Waited<T> {
		Waited { object: AtomicPtr::new(Object::new(value)), _owns: core::marker::PhantomData }
	}

	/// Protect the present value, as long as the guard exists. The guard may be sent to another thread.
	#[inline]
	pub fn read(&self) -> Protected<'_, T> {
		// SAFETY: the address of a pointer variable that is never null.
		let guard = unsafe { sys::quiesce_shazptr_protect(self.object.as_ptr() as *mut *mut c_void) };
		// SAFETY: a guard of that call has the pointer that was loaded, and protects its object until it is cleared.
		Protected { guard, value: unsafe { &(*(guard.ptr as *const Object<T>)).value } }
	}

	/// Replace the value, wait until no reader protects the old one, and return that.
	///
	/// Not while the caller itself protects the old value: it would wait for itself, for ever.
	pub fn swap(&self, value: T) -> T {
		let old = self.object.swap(Object::new(value), Ordering::AcqRel);
		if !cfg!(quiesce_control) {
			// SAFETY: readers cannot find the object any more.
			unsafe { sys::quiesce_synchronize_shazptr(old as *const c_void) }
		}
		// SAFETY: those that had it have cleared their guards, and it was in this pointer alone.
		unsafe { Object::take(old) }
	}

	/// Return the value, and end its use.
	///
	/// ```
	/// assert_eq!(quiesce::shazptr::Waited::new(1).into_inner(), 1);
	/// ```
	pub fn into_inner(self) -> T {
		let this = core::mem::ManuallyDrop::new(self);
		// SAFETY: guards borrow it, so there are none; it is not dropped.
		unsafe { Object::take(this.object.load(Ordering::Relaxed)) }
	}
}

impl<T> Drop for Waited<T> {
	fn drop(&mut self) {
		// SAFETY: guards borrow it, so there are none.
		unsafe { Object::destroy(*self.object.get_mut()) };
	}
}

impl<T: fmt::Debug> fmt::Debug for Waited<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_tuple("Waited").field(&*self.read()).finish()
	}
}

/// A protection of a value: [`Waited::read()`].
///
/// If it is leaked its address stays protected for ever: a wait for the value, or for a later one at that address, never returns.
///
/// ```compile_fail,E0505
/// # use quiesce::shazptr::Waited;
/// let value = Waited::new(1);
/// let reader = value.read();
/// drop(value);
/// assert_eq!(*reader, 1);
/// ```
#[must_use = "the protection ends where the guard is dropped"]
pub struct Protected<'a, T> {
	guard: sys::shazptr_guard,
	value: &'a T,
}

// SAFETY: any thread may clear a guard, and the value is shared.
unsafe impl<T: Sync> Send for Protected<'_, T> {}
// SAFETY: a shared reference gives the value alone.
unsafe impl<T: Sync> Sync for Protected<'_, T> {}

impl<T> Deref for Protected<'_, T> {
	type Target = T;

	#[inline(always)]
	fn deref(&self) -> &T {
		self.value
	}
}

impl<T> Drop for Protected<'_, T> {
	#[inline]
	fn drop(&mut self) {
		// SAFETY: the guard is cleared once.
		unsafe { sys::quiesce_shazptr_clear(self.guard) }
	}
}

impl<T: fmt::Debug> fmt::Debug for Protected<'_, T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		self.value.fmt(f)
	}
}
