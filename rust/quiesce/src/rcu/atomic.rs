// SPDX-License-Identifier: MIT
//! Pointers for data structures, in the form of crossbeam-epoch: [`Atomic`], [`Owned`], [`Shared`].
//!
//! A pointer is the address of an object with a tag in its low bits. The object begins with the two words by which it is queued
//! (`object.rs`), so at least three bits are free for tags, whatever the type.

use super::Guard;
use crate::object::Object;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{align_of, offset_of, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

const fn mask<T>() -> usize {
	align_of::<Object<T>>() - 1
}

fn tag_of<T>(data: *mut Object<T>) -> usize {
	data as usize & mask::<T>()
}

/// The same pointer with another tag; arithmetic keeps its provenance.
fn with_tag<T>(data: *mut Object<T>, tag: usize) -> *mut Object<T> {
	let bytes = data as *mut u8;
	bytes.wrapping_sub(tag_of(data)).wrapping_add(tag & mask::<T>()) as *mut Object<T>
}

fn without_tag<T>(data: *mut Object<T>) -> *mut Object<T> {
	with_tag(data, 0)
}

mod sealed {
	pub trait Sealed {}
}

/// A pointer that an [`Atomic`] can store: [`Owned`] or [`Shared`].
pub trait Pointer<T>: sealed::Sealed {
	#[doc(hidden)]
	fn into_data(self) -> Data<T>;
	/// # Safety
	/// The data is of a pointer of this type, and used for one pointer only if the type owns its object.
	#[doc(hidden)]
	unsafe fn from_data(data: Data<T>) -> Self;
}

/// The word of a pointer.
#[doc(hidden)]
pub struct Data<T>(*mut Object<T>);

/// A pointer that threads load and replace; it may be null, and has a tag.
///
/// It does not own its object: a program that drops it destroys the object before, if nothing else does, by [`into_owned()`](Atomic::into_owned).
///
/// ```
/// use quiesce::rcu::{self, Atomic, Owned, Shared};
/// use std::sync::atomic::Ordering::{AcqRel, Acquire};
///
/// let head = Atomic::<u32>::null();
/// let guard = rcu::read();
/// let new = Owned::new(1);
/// head.compare_exchange(Shared::null(), new, AcqRel, Acquire, &guard).unwrap();
/// // SAFETY: loaded in this section.
/// assert_eq!(unsafe { head.load(Acquire, &guard).as_ref() }, Some(&1));
/// # drop(guard);
/// # unsafe { drop(head.into_owned()) };
/// ```
pub struct Atomic<T> {
	data: AtomicPtr<Object<T>>,
}

// SAFETY: threads get references to the object (T: Sync), and destroy objects that others have stored (T: Send).
unsafe impl<T: Send + Sync> Send for Atomic<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Atomic<T> {}

/// A [`Atomic::compare_exchange()`] that failed.
pub struct CompareExchangeError<'g, T, P: Pointer<T>> {
	/// The pointer that was found.
	pub current: Shared<'g, T>,
	/// The pointer that was not stored.
	pub new: P,
}

impl<T, P: Pointer<T>> fmt::Debug for CompareExchangeError<'_, T, P> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_struct("CompareExchangeError").field("current", &self.current).finish_non_exhaustive()
	}
}

impl<T> Atomic<T> {
	/// Return a pointer to a new object.
	pub fn new(value: T) -> Atomic<T> {
		Atomic::from(Owned::new(value))
	}

	/// Return a null pointer.
	pub const fn null() -> Atomic<T> {
		Atomic { data: AtomicPtr::new(ptr::null_mut()) }
	}

	/// Load the pointer; `Acquire` or stronger if its object is used.
	#[inline(always)]
	pub fn load<'g>(&self, order: Ordering, _guard: &'g Guard) -> Shared<'g, T> {
		Shared::new(self.data.load(order))
	}

	/// Store a pointer; `Release` or stronger if its object is new.
	#[inline]
	pub fn store<P: Pointer<T>>(&self, new: P, order: Ordering) {
		self.data.store(new.into_data().0, order);
	}

	/// Store a pointer, and return the one before.
	#[inline]
	pub fn swap<'g, P: Pointer<T>>(&self, new: P, order: Ordering, _guard: &'g Guard) -> Shared<'g, T> {
		Shared::new(self.data.swap(new.into_data().0, order))
	}

	/// Store a pointer if the present one, with its tag, is `current`; return the one that was stored.
	#[inline]
	pub fn compare_exchange<'g, P: Pointer<T>>(
		&self,
		current: Shared<'_, T>,
		new: P,
		success: Ordering,
		failure: Ordering,
		_guard: &'g Guard,
	) -> Result<Shared<'g, T>, CompareExchangeError<'g, T, P>> {
		let data = new.into_data().0;
		match self.data.compare_exchange(current.data, data, success, failure) {
			Ok(_) => Ok(Shared::new(data)),
			// SAFETY: it came from a P, and was not stored.
			Err(found) => {
				Err(CompareExchangeError { current: Shared::new(found), new: unsafe { P::from_data(Data(data)) } })
			}
		}
	}

	/// [`compare_exchange()`](Atomic::compare_exchange) that may fail although the pointer is `current`.
	#[inline]
	pub fn compare_exchange_weak<'g, P: Pointer<T>>(
		&self,
		current: Shared<'_, T>,
		new: P,
		success: Ordering,
		failure: Ordering,
		_guard: &'g Guard,
	) -> Result<Shared<'g, T>, CompareExchangeError<'g, T, P>> {
		let data = new.into_data().0;
		match self.data.compare_exchange_weak(current.data, data, success, failure) {
			Ok(_) => Ok(Shared::new(data)),
			// SAFETY: it came from a P, and was not stored.
			Err(found) => {
				Err(CompareExchangeError { current: Shared::new(found), new: unsafe { P::from_data(Data(data)) } })
			}
		}
	}

	/// Replace the tag, and return the pointer before: a step by which lists mark a node before they unlink it.
	///
	/// ```
	/// use quiesce::rcu::{self, Atomic};
	/// use std::sync::atomic::Ordering::AcqRel;
	///
	/// let link = Atomic::<u64>::null();
	/// let guard = rcu::read();
	/// assert_eq!(link.set_tag(1, AcqRel, &guard).tag(), 0);
	/// assert_eq!(link.set_tag(1, AcqRel, &guard).tag(), 1);
	/// ```
	pub fn set_tag<'g>(&self, tag: usize, order: Ordering, guard: &'g Guard) -> Shared<'g, T> {
		let mut current = self.load(Ordering::Relaxed, guard);
		loop {
			// Relaxed: only the exchange that succeeds counts.
			match self.compare_exchange_weak(current, current.with_tag(tag), order, Ordering::Relaxed, guard) {
				Ok(_) => return current,
				Err(error) => current = error.current,
			}
		}
	}

	/// Return the object of a pointer that no other thread has.
	///
	/// # Safety
	/// The pointer is not null, and no thread can find the object, by this pointer or another one, nor is in a section in which it has.
	pub unsafe fn into_owned(self) -> Owned<T> {
		// SAFETY: the caller's promise.
		unsafe { Owned::from_data(Data(self.data.into_inner())) }
	}

	/// [`into_owned()`](Atomic::into_owned) of a pointer that may be null.
	///
	/// # Safety
	/// As for `into_owned()`, except that the pointer may be null.
	///
	/// ```
	/// # use quiesce::rcu::Atomic;
	/// // SAFETY: no other thread has it.
	/// assert!(unsafe { Atomic::<u8>::null().try_into_owned() }.is_none());
	/// ```
	pub unsafe fn try_into_owned(self) -> Option<Owned<T>> {
		let data = self.data.into_inner();
		// SAFETY: the caller's promise.
		(!without_tag(data).is_null()).then(|| unsafe { Owned::from_data(Data(data)) })
	}
}

impl<T> Default for Atomic<T> {
	fn default() -> Atomic<T> {
		Atomic::null()
	}
}

impl<T> From<Owned<T>> for Atomic<T> {
	fn from(owned: Owned<T>) -> Atomic<T> {
		Atomic { data: AtomicPtr::new(owned.into_data().0) }
	}
}

impl<T> From<Shared<'_, T>> for Atomic<T> {
	fn from(shared: Shared<'_, T>) -> Atomic<T> {
		Atomic { data: AtomicPtr::new(shared.data) }
	}
}

impl<T> From<T> for Atomic<T> {
	fn from(value: T) -> Atomic<T> {
		Atomic::new(value)
	}
}

impl<T> fmt::Debug for Atomic<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		// Relaxed: printed only.
		f.debug_tuple("Atomic").field(&self.data.load(Ordering::Relaxed)).finish()
	}
}

/// An object that no other thread has, as a `Box` is, with a tag.
///
/// ```
/// use quiesce::rcu::Owned;
///
/// let mut number = Owned::new(1).with_tag(2);
/// *number += 1;
/// assert_eq!((number.tag(), number.into_inner()), (2, 2));
/// ```
pub struct Owned<T> {
	data: *mut Object<T>,
	_owns: PhantomData<T>,
}

// SAFETY: it is the only pointer to the value.
unsafe impl<T: Send> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Owned<T> {}

impl<T> Owned<T> {
	/// Make an object.
	pub fn new(value: T) -> Owned<T> {
		Owned { data: Object::new(value), _owns: PhantomData }
	}

	/// Return a pointer that can be stored and still used in the section. The object is no longer owned.
	///
	/// ```
	/// # use quiesce::rcu::{self, Owned};
	/// let guard = rcu::read();
	/// let shared = Owned::new(1).into_shared(&guard);
	/// // SAFETY: it was not stored anywhere.
	/// assert_eq!(*unsafe { shared.into_owned() }, 1);
	/// ```
	pub fn into_shared<'g>(self, _guard: &'g Guard) -> Shared<'g, T> {
		Shared::new(self.into_data().0)
	}

	/// Return the value.
	pub fn into_inner(self) -> T {
		let this = ManuallyDrop::new(self);
		// SAFETY: it owns the object, and is not dropped.
		unsafe { Object::take(without_tag(this.data)) }
	}

	/// Return the tag.
	pub fn tag(&self) -> usize {
		tag_of(self.data)
	}

	/// Return the object with another tag; bits of it that do not fit are dropped.
	pub fn with_tag(self, tag: usize) -> Owned<T> {
		let data = self.into_data().0;
		Owned { data: with_tag(data, tag), _owns: PhantomData }
	}
}

impl<T> sealed::Sealed for Owned<T> {}

impl<T> Pointer<T> for Owned<T> {
	fn into_data(self) -> Data<T> {
		Data(ManuallyDrop::new(self).data)
	}

	unsafe fn from_data(data: Data<T>) -> Owned<T> {
		Owned { data: data.0, _owns: PhantomData }
	}
}

impl<T> Drop for Owned<T> {
	fn drop(&mut self) {
		// SAFETY: it owns the object.
		unsafe { Object::destroy(without_tag(self.data)) };
	}
}

impl<T> Deref for Owned<T> {
	type Target = T;

	fn deref(&self) -> &T {
		// SAFETY: it owns the object.
		unsafe { &(*without_tag(self.data)).value }
	}
}

impl<T> DerefMut for Owned<T> {
	fn deref_mut(&mut self) -> &mut T {
		// SAFETY: it owns the object.
		unsafe { &mut (*without_tag(self.data)).value }
	}
}

impl<T> From<T> for Owned<T> {
	fn from(value: T) -> Owned<T> {
		Owned::new(value)
	}
}

impl<T: Clone> Clone for Owned<T> {
	fn clone(&self) -> Owned<T> {
		Owned::new((**self).clone()).with_tag(self.tag())
	}
}

impl<T: fmt::Debug> fmt::Debug for Owned<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_tuple("Owned").field(&**self).finish()
	}
}

/// A pointer that was loaded in a section, with its tag; it may be null.
///
/// ```
/// use quiesce::rcu::Shared;
///
/// let end = Shared::<u64>::null().with_tag(1);
/// assert!(end.is_null() && end.tag() == 1);
/// ```
///
/// It ends with the guard:
///
/// ```compile_fail,E0505
/// # use quiesce::rcu::{self, Atomic};
/// # use std::sync::atomic::Ordering::Acquire;
/// let number = Atomic::new(1);
/// let guard = rcu::read();
/// let shared = number.load(Acquire, &guard);
/// drop(guard);
/// let _ = shared.is_null();
/// ```
pub struct Shared<'g, T> {
	data: *mut Object<T>,
	_guard: PhantomData<(&'g (), *const T)>,
}

impl<'g, T> Shared<'g, T> {
	fn new(data: *mut Object<T>) -> Shared<'g, T> {
		Shared { data, _guard: PhantomData }
	}

	/// Return a null pointer.
	pub const fn null() -> Shared<'g, T> {
		Shared { data: ptr::null_mut(), _guard: PhantomData }
	}

	/// Whether it is null, whatever its tag.
	pub fn is_null(&self) -> bool {
		without_tag(self.data).is_null()
	}

	/// Return the address of the value; null if the pointer is.
	pub fn as_raw(&self) -> *const T {
		let object = without_tag(self.data);
		if object.is_null() {
			ptr::null()
		} else {
			(object as *const u8).wrapping_add(offset_of!(Object<T>, value)) as *const T
		}
	}

	/// Return a reference to the value.
	///
	/// # Safety
	/// - The pointer is not null. It was loaded in the section of the guard from an [`Atomic`] from which objects are unlinked before
	///   they are retired, or the object is never retired.
	/// - The load was `Acquire` or stronger, or the caller knows in another way that the value is written.
	/// - The guard is not leaked in a thread that ends before the last use of the reference: such a thread ends the section.
	#[inline(always)]
	pub unsafe fn deref(&self) -> &'g T {
		// SAFETY: the caller's promise.
		unsafe { &(*without_tag(self.data)).value }
	}

	/// Return a mutable reference to the value.
	///
	/// # Safety
	/// As for [`deref()`](Shared::deref); and no other reference to the value exists meanwhile.
	pub unsafe fn deref_mut(&mut self) -> &'g mut T {
		// SAFETY: the caller's promise.
		unsafe { &mut (*without_tag(self.data)).value }
	}

	/// Return a reference to the value; `None` if the pointer is null.
	///
	/// # Safety
	/// As for [`deref()`](Shared::deref), except that the pointer may be null.
	#[inline(always)]
	pub unsafe fn as_ref(&self) -> Option<&'g T> {
		// SAFETY: the caller's promise.
		(!self.is_null()).then(|| unsafe { self.deref() })
	}

	/// Return the object.
	///
	/// # Safety
	/// The pointer is not null, and no other thread has the object or can find it.
	pub unsafe fn into_owned(self) -> Owned<T> {
		// SAFETY: the caller's promise.
		unsafe { Owned::from_data(Data(self.data)) }
	}

	/// Return the tag.
	pub fn tag(&self) -> usize {
		tag_of(self.data)
	}

	/// Return the pointer with another tag; bits of it that do not fit are dropped.
	pub fn with_tag(&self, tag: usize) -> Shared<'g, T> {
		Shared::new(with_tag(self.data, tag))
	}

	pub(crate) fn object(&self) -> *mut Object<T> {
		without_tag(self.data)
	}
}

impl<T> sealed::Sealed for Shared<'_, T> {}

impl<T> Pointer<T> for Shared<'_, T> {
	fn into_data(self) -> Data<T> {
		Data(self.data)
	}

	unsafe fn from_data(data: Data<T>) -> Self {
		Shared::new(data.0)
	}
}

impl<T> Clone for Shared<'_, T> {
	fn clone(&self) -> Self {
		*self
	}
}

impl<T> Copy for Shared<'_, T> {}

impl<T> PartialEq for Shared<'_, T> {
	fn eq(&self, other: &Self) -> bool {
		self.data == other.data
	}
}

impl<T> Eq for Shared<'_, T> {}

impl<T> Default for Shared<'_, T> {
	fn default() -> Self {
		Shared::null()
	}
}

impl<T> fmt::Debug for Shared<'_, T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_struct("Shared").field("raw", &self.as_raw()).field("tag", &self.tag()).finish()
	}
}
