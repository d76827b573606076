// SPDX-License-Identifier: MIT
//! A value that is read much and replaced rarely.

use super::{read, Section};
use crate::object::Object;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A value that readers read without a fence, and that updaters replace as a whole.
///
/// ```
/// use quiesce::rcu::RcuCell;
///
/// struct Config {
/// 	limit: u32,
/// }
/// let config = RcuCell::new(Config { limit: 10 });
/// assert_eq!(config.read(|c| c.limit), 10);
/// config.replace(Config { limit: 20 });
/// config.update(|c| Config { limit: c.limit + 1 });
/// assert_eq!(config.read(|c| c.limit), 21);
/// ```
///
/// What a reader borrows ends with its closure:
///
/// ```compile_fail
/// # use quiesce::rcu::RcuCell;
/// let cell = RcuCell::new(String::from("a"));
/// let escaped: &str = cell.read(|text| text.as_str());
/// ```
///
/// Values that are replaced are dropped later, by another thread. So they are `Send` and `'static`:
///
/// ```compile_fail,E0277
/// quiesce::rcu::RcuCell::new(std::rc::Rc::new(1));
/// ```
///
/// ```compile_fail,E0597
/// let text = String::from("a");
/// let cell = quiesce::rcu::RcuCell::new(text.as_str());
/// ```
pub struct RcuCell<T: Send + Sync + 'static> {
	object: AtomicPtr<Object<T>>,
	_owns: core::marker::PhantomData<T>,
}

// SAFETY: threads get references to the value (T: Sync), and drop values that others have stored (T: Send).
unsafe impl<T: Send + Sync + 'static> Sync for RcuCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync + 'static> Send for RcuCell<T> {}

impl<T: Send + Sync + 'static> RcuCell<T> {
	/// Make a cell with a value.
	pub fn new(value: T) -> RcuCell<T> {
		RcuCell { object: AtomicPtr::new(Object::new(value)), _owns: core::marker::PhantomData }
	}

	/// Return the present value, for as long as the section lasts.
	///
	/// ```
	/// # use quiesce::rcu::{self, RcuCell};
	/// let cell = RcuCell::new(5);
	/// rcu::section(|section| {
	/// 	let five = cell.get(section);
	/// 	cell.replace(6);
	/// 	assert_eq!((*five, *cell.get(section)), (5, 6));
	/// });
	/// ```
	#[inline(always)]
	pub fn get<'s>(&'s self, _section: &'s Section) -> &'s T {
		// SAFETY: the object is never null. An updater retires it after it has replaced it, so it stays until this section has ended,
		// which is after 's: a section is the scope of a closure that is called for every 's. The cell itself is borrowed for 's.
		unsafe { &(*self.object.load(Ordering::Acquire)).value }
	}

	/// Call a function with the present value, in a section.
	///
	/// The value stays while the function runs, and so delays updaters of the whole process.
	#[inline(always)]
	pub fn read<R>(&self, function: impl FnOnce(&T) -> R) -> R {
		super::section(|section| function(self.get(section)))
	}

	/// Return a copy of the present value.
	///
	/// ```
	/// # use quiesce::rcu::RcuCell;
	/// assert_eq!(RcuCell::new(5).load(), 5);
	/// ```
	#[inline(always)]
	pub fn load(&self) -> T
	where
		T: Clone,
	{
		self.read(T::clone)
	}

	/// Replace the value. The old one is dropped after a grace period, in another thread, perhaps; the call does not wait for it.
	#[inline]
	pub fn replace(&self, value: T) {
		let old = self.object.swap(Object::new(value), Ordering::AcqRel);
		// SAFETY: no reader can find it any more, it was in the cell alone, and T is Send and 'static.
		unsafe { Object::retire_rcu(old) }
	}

	/// Replace the value, wait for the readers of the old one, and return that.
	///
	/// # Panics
	/// In a section, before anything is replaced.
	///
	/// ```
	/// # use quiesce::rcu::RcuCell;
	/// let cell = RcuCell::new(String::from("old"));
	/// assert_eq!(cell.swap(String::from("new")), "old");
	/// ```
	#[track_caller]
	pub fn swap(&self, value: T) -> T {
		super::require_outside("RcuCell::swap()");
		let old = self.object.swap(Object::new(value), Ordering::AcqRel);
		super::synchronize();
		// SAFETY: no reader can find it any more, and those that had have left.
		unsafe { Object::take(old) }
	}

	/// Replace the value by one that a function makes of it; the function is called again if another thread replaces it meanwhile.
	///
	/// The function is called in a section, so waits for readers panic in it.
	pub fn update(&self, mut function: impl FnMut(&T) -> T) {
		// A section, so that the address of the old object is not that of another one meanwhile.
		let _guard = read();
		let mut old = self.object.load(Ordering::Acquire);
		loop {
			// SAFETY: never null, and it stays in the section, which is dropped at the end of this call.
			let fresh = Object::new(function(unsafe { &(*old).value }));
			match self.object.compare_exchange(old, fresh, Ordering::AcqRel, Ordering::Acquire) {
				Ok(_) => break,
				Err(found) => {
					// SAFETY: no other thread has had it.
					unsafe { Object::destroy(fresh) };
					old = found;
				}
			}
		}
		// SAFETY: as in replace().
		unsafe { Object::retire_rcu(old) }
	}

	/// Return the value of a cell that no other thread has.
	///
	/// ```
	/// # use quiesce::rcu::RcuCell;
	/// let mut cell = RcuCell::new(1);
	/// *cell.get_mut() += 1;
	/// assert_eq!(cell.into_inner(), 2);
	/// ```
	pub fn get_mut(&mut self) -> &mut T {
		// SAFETY: never null; readers borrow the cell.
		unsafe { &mut (**self.object.get_mut()).value }
	}

	/// Return the value, and end the cell.
	pub fn into_inner(self) -> T {
		let this = core::mem::ManuallyDrop::new(self);
		// SAFETY: readers borrow the cell, so there are none; it is not dropped.
		unsafe { Object::take(this.object.load(Ordering::Relaxed)) }
	}
}

impl<T: Send + Sync + 'static> Drop for RcuCell<T> {
	fn drop(&mut self) {
		// SAFETY: readers borrow the cell, so there are none.
		unsafe { Object::destroy(*self.object.get_mut()) };
	}
}

impl<T: Send + Sync + Default + 'static> Default for RcuCell<T> {
	fn default() -> RcuCell<T> {
		RcuCell::new(T::default())
	}
}

impl<T: Send + Sync + core::fmt::Debug + 'static> core::fmt::Debug for RcuCell<T> {
	fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
		self.read(|value| f.debug_tuple("RcuCell").field(value).finish())
	}
}
