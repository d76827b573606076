// SPDX-License-Identifier: MIT
//! Structures of the library at an address that stays, made at their first use: so the types around them have `const` constructors, and may
//! be moved.

use core::sync::atomic::{AtomicPtr, Ordering};

pub(super) struct Lazy<T> {
	place: AtomicPtr<T>,
}

impl<T> Lazy<T> {
	pub(super) const fn new() -> Lazy<T> {
		Lazy { place: AtomicPtr::new(core::ptr::null_mut()) }
	}

	/// Return the structure, which `make` makes if there is none; of those that several threads make at once all but one are dropped by
	/// `drop`.
	#[inline(always)]
	pub(super) fn get(&self, make: fn() -> Box<T>, drop: fn(Box<T>)) -> *mut T {
		let place = self.place.load(Ordering::Acquire);
		if place.is_null() {
			self.make(make, drop)
		} else {
			place
		}
	}

	#[cold]
	fn make(&self, make: fn() -> Box<T>, drop: fn(Box<T>)) -> *mut T {
		crate::fast::check_layout();
		let fresh = Box::into_raw(make());
		match self.place.compare_exchange(core::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
			Ok(_) => fresh,
			Err(found) => {
				// SAFETY: it is the box of above, which no other thread has.
				drop(unsafe { Box::from_raw(fresh) });
				found
			}
		}
	}

	/// Return the structure if there is one.
	pub(super) fn existing(&self) -> Option<*mut T> {
		let place = self.place.load(Ordering::Acquire);
		(!place.is_null()).then_some(place)
	}

	/// Return the structure of a value that is dropped.
	pub(super) fn take(&mut self) -> Option<Box<T>> {
		let place = core::mem::replace(self.place.get_mut(), core::ptr::null_mut());
		// SAFETY: a box that make() left there, once.
		(!place.is_null()).then(|| unsafe { Box::from_raw(place) })
	}
}
