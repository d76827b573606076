// SPDX-License-Identifier: MIT
//! Hazard pointers: a reader protects one object, however long it stays, and garbage is bounded.
//!
//! A reader that stays delays the end of the object that it protects, and of no other; so readers may sleep, and hold objects for long. What
//! was retired and not yet destroyed is bounded: some thousands of objects for each thread that retires, or about a megabyte.
//!
//! - [`HazardCell`]: a value that is replaced as a whole. No `unsafe`.
//! - [`AtomicPtr`], [`HazardPointer`]: pointers for data structures, in the form of haphazard.
//!
//! Destructors run in any thread that retires, in the middle of a call that retires, or in a thread of the library; so they should not take
//! locks that a thread holds when it retires. They must not panic: the process aborts. Nor do they wait for other destructors or deferred calls, by
//! [`barrier()`], [`crate::rcu::barrier()`] or [`crate::sync::Srcu::barrier()`]: that aborts the process, too.

use crate::fast;
use crate::object::Object;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering;
use quiesce_sys as sys;

/// A slot that protects one object at a time.
///
/// To make one takes a slot of the thread, which is cheap; to keep it for many reads is cheaper. It may be sent to another thread. If it is
/// leaked its object stays protected for ever.
///
/// ```
/// use quiesce::hazard::{HazardCell, HazardPointer};
///
/// let cell = HazardCell::new(1);
/// let mut slot = HazardPointer::new();
/// for _ in 0..3 {
/// 	assert_eq!(*cell.load(&mut slot), 1);
/// }
/// ```
///
/// A slot protects one object:
///
/// ```compile_fail,E0499
/// # use quiesce::hazard::{HazardCell, HazardPointer};
/// let (a, b) = (HazardCell::new(1), HazardCell::new(2));
/// let mut slot = HazardPointer::new();
/// let first = a.load(&mut slot);
/// let second = b.load(&mut slot);
/// assert_eq!(first + second, 3);
/// ```
pub struct HazardPointer {
	slot: *mut sys::hazptr_slot,
}

// SAFETY: a slot belongs to whoever holds the pointer to it, and may be freed in any thread.
unsafe impl Send for HazardPointer {}
// SAFETY: a shared reference allows nothing.
unsafe impl Sync for HazardPointer {}

impl HazardPointer {
	/// Take a slot.
	///
	/// # Panics
	/// If the process has nearly a million slots in use.
	#[inline]
	pub fn new() -> HazardPointer {
		fast::check_layout();
		// SAFETY: any thread may take a slot; without a context it is the thread's own, or of the pool.
		let slot = unsafe { sys::quiesce_hazptr_alloc(ptr::null_mut()) };
		assert!(!slot.is_null(), "no hazard pointer is left");
		HazardPointer { slot }
	}

	/// Protect the object that a pointer points to, and return it; `None` if the pointer is null.
	///
	/// # Safety
	/// The pointer is null or points to a `T`, which is retired, by [`retire()`], only after no pointer that is loaded in this way
	/// points to it any more.
	///
	/// ```
	/// use quiesce::hazard::{AtomicPtr, HazardPointer};
	///
	/// let number = AtomicPtr::new(5);
	/// let mut slot = HazardPointer::new();
	/// // SAFETY: `number` retires objects after it has replaced them.
	/// assert_eq!(unsafe { slot.protect(&number) }, Some(&5));
	/// ```
	#[inline(always)]
	pub unsafe fn protect<'l, T>(&'l mut self, pointer: &'l AtomicPtr<T>) -> Option<&'l T> {
		// SAFETY: the slot is this one's, and the borrow of its last object has ended.
		let object = unsafe { fast::hazard_protect(self.slot, &pointer.object) };
		// SAFETY: it is null, or protected as long as the slot is borrowed. The reference is to the value alone, because a thread that
		// retires the object writes its head.
		(!object.is_null()).then(|| unsafe { &(*object).value })
	}

	/// End the protection; the slot stays.
	///
	/// ```
	/// # let mut slot = quiesce::hazard::HazardPointer::new();
	/// slot.reset_protection();
	/// ```
	#[inline(always)]
	pub fn reset_protection(&mut self) {
		// SAFETY: the slot is this one's, and the borrow of its last object has ended.
		unsafe { sys::quiesce_hazptr_clear(self.slot) }
	}
}

impl Default for HazardPointer {
	fn default() -> HazardPointer {
		HazardPointer::new()
	}
}

impl Drop for HazardPointer {
	#[inline]
	fn drop(&mut self) {
		// SAFETY: the slot is this one's, taken without a context.
		unsafe { sys::quiesce_hazptr_free(ptr::null_mut(), self.slot) }
	}
}

impl fmt::Debug for HazardPointer {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("HazardPointer")
	}
}

/// A value that readers protect while they use it, and that updaters replace as a whole.
///
/// ```
/// use quiesce::hazard::HazardCell;
///
/// let names = HazardCell::new(vec!["a"]);
/// names.replace(vec!["a", "b"]);
/// assert_eq!(names.read(|names| names.len()), 2);
/// ```
///
/// Values that are replaced are dropped later, perhaps in another thread:
///
/// ```compile_fail,E0277
/// quiesce::hazard::HazardCell::new(std::rc::Rc::new(1));
/// ```
pub struct HazardCell<T: Send + Sync + 'static> {
	pointer: AtomicPtr<T>,
}

impl<T: Send + Sync + 'static> HazardCell<T> {
	/// Make a cell with a value.
	pub fn new(value: T) -> HazardCell<T> {
		HazardCell { pointer: AtomicPtr::new(value) }
	}

	/// Return the present value, which stays as long as the slot is borrowed.
	#[inline(always)]
	pub fn load<'l>(&'l self, slot: &'l mut HazardPointer) -> &'l T {
		// SAFETY: the pointer is private. It is never null, and objects are retired after they have been replaced.
		unsafe { slot.protect(&self.pointer).unwrap_unchecked() }
	}

	/// Call a function with the present value, by a slot of its own.
	#[inline]
	pub fn read<R>(&self, function: impl FnOnce(&T) -> R) -> R {
		function(self.load(&mut HazardPointer::new()))
	}

	/// Replace the value; the old one is dropped when no slot protects it.
	#[inline]
	pub fn replace(&self, value: T) {
		let old = self.pointer.object.swap(Object::new(value), Ordering::AcqRel);
		// SAFETY: no reader can find it any more, it was in the cell alone, and T is Send and 'static.
		unsafe { Object::retire_hazard(old) }
	}

	/// Replace the value by one that a function makes of it; the function is called again if another thread replaces it meanwhile.
	///
	/// The old value is protected while the function runs, so that must not wait for it: [`barrier()`] would never return if another
	/// thread had replaced it.
	///
	/// ```
	/// # use quiesce::hazard::HazardCell;
	/// let cell = HazardCell::new(1);
	/// cell.update(|n| n + 1);
	/// assert_eq!(cell.into_inner(), 2);
	/// ```
	pub fn update(&self, mut function: impl FnMut(&T) -> T) {
		// The slot protects the old object, so its address is not that of another one meanwhile.
		let slot = HazardPointer::new();
		loop {
			// SAFETY: the slot is this one's; references to its last object are gone.
			let old = unsafe { fast::hazard_protect(slot.slot, &self.pointer.object) };
			// SAFETY: never null, and protected.
			let fresh = Object::new(function(unsafe { &(*old).value }));
			if self.pointer.object.compare_exchange(old, fresh, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
				drop(slot);
				// SAFETY: as in replace().
				return unsafe { Object::retire_hazard(old) };
			}
			// SAFETY: no other thread has had it.
			unsafe { Object::destroy(fresh) };
		}
	}

	/// Return the value, and end the cell.
	pub fn into_inner(self) -> T {
		let this = core::mem::ManuallyDrop::new(self);
		// SAFETY: readers borrow the cell, so there are none; it is not dropped.
		unsafe { Object::take(this.pointer.object.load(Ordering::Relaxed)) }
	}
}

impl<T: Send + Sync + 'static> Drop for HazardCell<T> {
	fn drop(&mut self) {
		// SAFETY: readers borrow the cell, so there are none.
		unsafe { Object::destroy(*self.pointer.object.get_mut()) };
	}
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for HazardCell<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		self.read(|value| f.debug_tuple("HazardCell").field(value).finish())
	}
}

/// A pointer that threads load and replace; it may be null. Like haphazard's it owns its object, but does not destroy it where it is
/// dropped: [`take()`](AtomicPtr::take) does.
///
/// ```
/// use quiesce::hazard::{retire, AtomicPtr, HazardPointer};
///
/// let number = AtomicPtr::new(1);
/// let old = number.swap(AtomicPtr::new(2));
/// // SAFETY: it was only there, and i32 has no lifetime.
/// unsafe { retire(old) };
/// let mut slot = HazardPointer::new();
/// // SAFETY: as the documentation of protect() asks.
/// assert_eq!(unsafe { number.load(&mut slot) }, Some(&2));
/// # drop(slot);
/// # // SAFETY: no other thread has it.
/// # unsafe { number.take() };
/// ```
pub struct AtomicPtr<T> {
	object: core::sync::atomic::AtomicPtr<Object<T>>,
	_owns: PhantomData<T>,
}

// SAFETY: threads get references to the object (T: Sync), and destroy objects that others have stored (T: Send).
unsafe impl<T: Send + Sync> Send for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for AtomicPtr<T> {}

impl<T> AtomicPtr<T> {
	/// Return a pointer to a new object.
	pub fn new(value: T) -> AtomicPtr<T> {
		AtomicPtr { object: core::sync::atomic::AtomicPtr::new(Object::new(value)), _owns: PhantomData }
	}

	/// Return a null pointer.
	///
	/// ```
	/// static HEAD: quiesce::hazard::AtomicPtr<u32> = quiesce::hazard::AtomicPtr::null();
	/// assert!(HEAD.is_null());
	/// ```
	pub const fn null() -> AtomicPtr<T> {
		AtomicPtr { object: core::sync::atomic::AtomicPtr::new(ptr::null_mut()), _owns: PhantomData }
	}

	/// Whether it is null at this moment.
	pub fn is_null(&self) -> bool {
		// Relaxed: only compared.
		self.object.load(Ordering::Relaxed).is_null()
	}

	/// Protect the object, and return it: [`HazardPointer::protect()`] in haphazard's form.
	///
	/// # Safety
	/// As for `protect()`.
	#[inline(always)]
	pub unsafe fn load<'l>(&'l self, slot: &'l mut HazardPointer) -> Option<&'l T> {
		// SAFETY: the caller's promise.
		unsafe { slot.protect(self) }
	}

	/// Exchange the objects of two pointers, of which no other thread has `new`; return the old one.
	pub fn swap(&self, mut new: AtomicPtr<T>) -> AtomicPtr<T> {
		let old = self.object.swap(*new.object.get_mut(), Ordering::AcqRel);
		AtomicPtr { object: core::sync::atomic::AtomicPtr::new(old), _owns: PhantomData }
	}

	/// Store `new` if the object is `current`, or there is none and `current` is `None`; return the old pointer, or `new` if it was
	/// not stored.
	///
	/// `current` is protected, or never retired: otherwise another object may have its address.
	pub fn compare_exchange(&self, current: Option<&T>, mut new: AtomicPtr<T>) -> Result<AtomicPtr<T>, AtomicPtr<T>> {
		let current = current.map_or(ptr::null_mut(), |value| {
			(value as *const T as *mut u8).wrapping_sub(core::mem::offset_of!(Object<T>, value)) as *mut Object<T>
		});
		match self.object.compare_exchange(current, *new.object.get_mut(), Ordering::AcqRel, Ordering::Relaxed) {
			Ok(old) => Ok(AtomicPtr { object: core::sync::atomic::AtomicPtr::new(old), _owns: PhantomData }),
			Err(_) => Err(new),
		}
	}

	/// Return the value of the object; `None` if the pointer is null.
	///
	/// # Safety
	/// No other thread has the object or can find it.
	pub unsafe fn take(mut self) -> Option<T> {
		let object = *self.object.get_mut();
		// SAFETY: the caller's promise.
		(!object.is_null()).then(|| unsafe { Object::take(object) })
	}
}

impl<T> fmt::Debug for AtomicPtr<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		// Relaxed: printed only.
		f.debug_tuple("AtomicPtr").field(&self.object.load(Ordering::Relaxed)).finish()
	}
}

/// Destroy the object of a pointer once no slot protects it.
///
/// # Safety
/// - No thread can find the object any more, except by a slot that protects it.
/// - It is retired once. Its value may be dropped in another thread (`T: Send`), and at any later time: it refers to nothing that ends before.
pub unsafe fn retire<T>(mut pointer: AtomicPtr<T>) {
	let object = *pointer.object.get_mut();
	if !object.is_null() {
		// SAFETY: the caller's promise.
		unsafe { Object::retire_hazard(object) }
	}
}

/// Wait until everything that was retired before has been destroyed; it waits for the slots that protect it, too.
///
/// Destructors that are due run in the caller. Never called by one of them or by a deferred call, which the library reports, and the process
/// aborts; nor while the caller protects a retired object.
///
/// ```
/// quiesce::hazard::barrier();
/// ```
pub fn barrier() {
	// SAFETY: no condition; misuse is reported, or waits.
	unsafe { sys::quiesce_hazptr_barrier() }
}

/// Destroy everything that was retired before, except what is protected; return whether nothing is left. Never called where
/// [`barrier()`] is not.
///
/// ```
/// assert!(quiesce::hazard::try_barrier());
/// ```
pub fn try_barrier() -> bool {
	// SAFETY: no condition.
	unsafe { sys::quiesce_hazptr_try_barrier() }
}
