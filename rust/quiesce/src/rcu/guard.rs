// SPDX-License-Identifier: MIT
//! Sections: as the scope of a closure, and as a value.

use super::Shared;
use crate::fast;
use crate::object::Object;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

/// A section of RCU, which ends where the value is dropped.
///
/// It belongs to its thread: it is neither `Send` nor `Sync`. Guards nest and may be dropped in any order; more than 8190 at a time in one thread
/// abort the process, and those that were leaked count.
///
/// A guard is a value, so a program can leak it. A thread that ends with a leaked guard ends the section with it, and that is why references
/// that a mere guard yields come from `unsafe` calls ([`Shared::deref`]). [`section()`] yields safe ones.
///
/// ```
/// use quiesce::rcu;
///
/// let guard = rcu::read();
/// {
/// 	let _inner = rcu::read();
/// }
/// drop(guard);
/// ```
///
/// ```compile_fail,E0277
/// let guard = quiesce::rcu::read();
/// std::thread::spawn(move || drop(guard));
/// ```
///
/// ```compile_fail,E0277
/// let guard = quiesce::rcu::read();
/// std::thread::scope(|s| {
/// 	s.spawn(|| drop(&guard));
/// });
/// ```
///
/// A future that holds one over an `.await` cannot move to another thread, so executors with several threads refuse it:
///
/// ```compile_fail
/// fn spawn<F: std::future::Future + Send + 'static>(_: F) {}
/// spawn(async {
/// 	let guard = quiesce::rcu::read();
/// 	std::future::ready(()).await;
/// 	drop(guard);
/// });
/// ```
#[must_use = "the section ends where the guard is dropped"]
pub struct Guard {
	_own_thread: PhantomData<*mut ()>,
}

/// Enter a section.
///
/// ```
/// let guard = quiesce::rcu::read();
/// drop(guard);
/// ```
#[inline(always)]
pub fn read() -> Guard {
	fast::read_lock();
	Guard { _own_thread: PhantomData }
}

/// [`read()`] by the name that crossbeam-epoch gives it.
///
/// ```
/// let guard = &quiesce::rcu::pin();
/// # let _ = guard;
/// ```
#[inline(always)]
pub fn pin() -> Guard {
	read()
}

impl Drop for Guard {
	#[inline(always)]
	fn drop(&mut self) {
		// SAFETY: the guard is in the thread that entered the section.
		unsafe { fast::read_unlock() }
	}
}

impl Guard {
	/// Destroy an object, and free its memory, after a grace period.
	///
	/// # Safety
	/// - No thread can find the object any more, except by pointers that it has loaded before, in sections that are still open.
	/// - It is retired once, is not used afterwards by the caller outside of its section, and is not null.
	/// - Its value may be dropped in another thread (`T: Send`), and at any later time: it refers to nothing that ends before.
	///
	/// ```
	/// use quiesce::rcu::{self, Atomic, Owned};
	/// use std::sync::atomic::Ordering;
	///
	/// let number = Atomic::new(1);
	/// let guard = rcu::read();
	/// let old = number.swap(Owned::new(2), Ordering::AcqRel, &guard);
	/// // SAFETY: it was unlinked by this thread, and is a number.
	/// unsafe { guard.defer_destroy(old) };
	/// # drop(guard);
	/// # unsafe { drop(number.into_owned()) };
	/// ```
	#[inline]
	pub unsafe fn defer_destroy<T>(&self, object: Shared<'_, T>) {
		// SAFETY: the caller's promise.
		unsafe { Object::retire_rcu(object.object()) }
	}

	/// Call a function after a grace period: [`defer()`](super::defer) of crossbeam's form.
	///
	/// ```
	/// quiesce::rcu::read().defer(|| println!("later"));
	/// ```
	pub fn defer<F: FnOnce() + Send + 'static>(&self, function: F) {
		super::defer(function);
	}

	/// [`defer()`](Guard::defer) of a function that is not `Send` or not `'static`.
	///
	/// # Safety
	/// It may be called in another thread, and at any later time.
	///
	/// ```
	/// let word = Box::into_raw(Box::new(7));
	/// // SAFETY: this is the only pointer to the number, which may be dropped anywhere.
	/// unsafe { quiesce::rcu::read().defer_unchecked(move || drop(Box::from_raw(word))) };
	/// ```
	pub unsafe fn defer_unchecked<F: FnOnce()>(&self, function: F) {
		// SAFETY: the caller's promise.
		unsafe { Object::call_rcu(Object::new(function)) }
	}

	/// End the section and begin another one, so that updaters do not wait for the whole of a long loop.
	///
	/// ```
	/// let mut guard = quiesce::rcu::read();
	/// for _ in 0..10 {
	/// 	guard.repin();
	/// }
	/// ```
	///
	/// Nothing that was loaded before may be used afterwards:
	///
	/// ```compile_fail,E0502
	/// # use quiesce::rcu::{self, Atomic};
	/// # use std::sync::atomic::Ordering::Acquire;
	/// let mut guard = rcu::read();
	/// let number = Atomic::new(1);
	/// let shared = number.load(Acquire, &guard);
	/// guard.repin();
	/// let _ = shared.is_null();
	/// ```
	#[inline]
	pub fn repin(&mut self) {
		// SAFETY: the thread is in the guard's section. The unlock is of one section, and another one begins.
		unsafe { fast::read_unlock() }
		fast::read_lock();
	}

	/// Call a function outside of the section, as [`repin()`](Guard::repin) does nothing there. The section begins anew before the
	/// return, also if the function panics. Outer sections of the thread stay open.
	///
	/// ```
	/// let mut guard = quiesce::rcu::read();
	/// guard.repin_after(quiesce::rcu::synchronize);
	/// ```
	pub fn repin_after<R>(&mut self, function: impl FnOnce() -> R) -> R {
		struct Again;
		impl Drop for Again {
			fn drop(&mut self) {
				fast::read_lock();
			}
		}
		// SAFETY: the thread is in the guard's section, and enters another one before the guard can be used or dropped.
		unsafe { fast::read_unlock() }
		let _again = Again;
		function()
	}
}

impl core::fmt::Debug for Guard {
	fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
		f.write_str("Guard")
	}
}

/// Return a guard that protects nothing, for objects that no other thread has.
///
/// # Safety
/// No other thread retires what the caller loads with it, or stores to it.
///
/// ```
/// use quiesce::rcu::{unprotected, Atomic};
/// use std::sync::atomic::Ordering;
///
/// let number = Atomic::new(1);
/// // SAFETY: no other thread has it.
/// unsafe { assert_eq!(*number.load(Ordering::Relaxed, unprotected()).deref(), 1) };
/// # unsafe { drop(number.into_owned()) };
/// ```
pub unsafe fn unprotected() -> &'static Guard {
	// SAFETY: a guard has no bytes. This one is never dropped, and so leaves no section.
	unsafe { NonNull::<Guard>::dangling().as_ref() }
}

/// A section that is the scope of a closure: [`section()`]. It is a [`Guard`] that cannot be leaked.
pub struct Section {
	guard: Guard,
}

/// Call a function in a section.
///
/// References that it gets by the section end with it, so they cannot outlive it in any way.
///
/// ```
/// use quiesce::rcu::{self, RcuCell};
///
/// static NAMES: [&str; 2] = ["a", "b"];
/// let (first, second) = (RcuCell::new(0), RcuCell::new(1));
/// let both = rcu::section(|section| (NAMES[*first.get(section)], NAMES[*second.get(section)]));
/// assert_eq!(both, ("a", "b"));
/// ```
///
/// ```compile_fail
/// # use quiesce::rcu::{self, RcuCell};
/// let cell = RcuCell::new(1);
/// let escaped: &i32 = rcu::section(|section| cell.get(section));
/// ```
///
/// ```compile_fail
/// # use quiesce::rcu;
/// let escaped = rcu::section(|section| section);
/// ```
#[inline(always)]
pub fn section<R>(function: impl FnOnce(&Section) -> R) -> R {
	let section = Section { guard: read() };
	function(&section)
}

impl Deref for Section {
	type Target = Guard;

	fn deref(&self) -> &Guard {
		&self.guard
	}
}
