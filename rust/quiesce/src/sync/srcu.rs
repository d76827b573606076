// SPDX-License-Identifier: MIT
//! SRCU: sections that may sleep and change threads, in domains of their own.

use super::ending::elsewhere;
use super::lazy::Lazy;
use crate::object::{in_callback, Object};
use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use quiesce_sys as sys;

/// A domain: its updaters wait for its own readers, and its readers may sleep, and leave their section in another thread.
///
/// ```
/// use quiesce::sync::Srcu;
///
/// static FILES: Srcu = Srcu::new();
/// let section = FILES.read();
/// std::thread::spawn(move || drop(section)).join().unwrap();
/// FILES.synchronize();
/// ```
///
/// A domain that is dropped waits for what was deferred in it; but not in a deferred call or destructor of any kind, where another thread
/// waits in its place. One with a leaked guard must not be dropped: the library reports it, and the process aborts, or it waits for ever.
///
/// ```
/// use quiesce::rcu::{self, RcuCell};
/// use quiesce::sync::SrcuCell;
///
/// let outer = RcuCell::new(SrcuCell::new(1));
/// outer.read(|inner| inner.replace(2));
/// outer.replace(SrcuCell::new(3)); // drops the domain of the old cell in a callback of RCU
/// rcu::barrier();
/// ```
pub struct Srcu {
	domain: Lazy<sys::srcu_struct>,
	deferred: AtomicBool, // a call was deferred at some time
}

// SAFETY: all calls of a domain may be made by any thread.
unsafe impl Send for Srcu {}
// SAFETY: as above.
unsafe impl Sync for Srcu {}

/// A word that the library does not use, but clears when it has ended a domain.
const IN_USE: u64 = 1;

fn make() -> Box<sys::srcu_struct> {
	// SAFETY: the structure has no invalid value.
	let mut domain: Box<sys::srcu_struct> = Box::new(unsafe { core::mem::zeroed() });
	// SAFETY: the box's memory, which no other thread has, and a constant text. Without memory for counters the domain works.
	unsafe { sys::quiesce_init_srcu_struct(sys::QUIESCE_LAYOUT, &mut *domain, c"a domain of a Rust program".as_ptr()) };
	domain.pad[0] = IN_USE;
	domain
}

/// A domain that no thread uses any more, except for what was deferred in it.
struct Ending(Box<sys::srcu_struct>);

// SAFETY: any thread may end a domain.
unsafe impl Send for Ending {}

impl Ending {
	/// End a domain in which nothing is deferred. If the library refuses, and a hook for misuse lets the program go on, the domain is
	/// leaked, as it is in use.
	fn end(mut self) {
		// SAFETY: no thread uses the domain any more.
		unsafe { sys::quiesce_cleanup_srcu_struct(&mut *self.0) }
		if self.0.pad[0] == IN_USE {
			core::mem::forget(self);
		}
	}

	fn wait_and_end(mut self) {
		// SAFETY: an initialised domain.
		unsafe { sys::quiesce_srcu_barrier(&mut *self.0) }
		self.end();
	}
}

fn discard(domain: Box<sys::srcu_struct>) {
	Ending(domain).end();
}

impl Srcu {
	/// Make a domain; its counters are allocated at its first use.
	pub const fn new() -> Srcu {
		Srcu { domain: Lazy::new(), deferred: AtomicBool::new(false) }
	}

	#[inline(always)]
	fn place(&self) -> *mut sys::srcu_struct {
		self.domain.get(make, discard)
	}

	/// Enter a section.
	#[inline]
	pub fn read(&self) -> SrcuGuard<'_> {
		let domain = self.place();
		// SAFETY: an initialised domain.
		SrcuGuard { domain: self, index: unsafe { sys::quiesce_srcu_down_read(domain) } }
	}

	/// Wait until every section of the domain that is now open has ended; not in one of them, which would wait for itself.
	pub fn synchronize(&self) {
		if !cfg!(quiesce_control) {
			// SAFETY: an initialised domain.
			unsafe { sys::quiesce_synchronize_srcu(self.place()) }
		}
	}

	/// [`synchronize()`](Srcu::synchronize), whose readers yield their CPU at once.
	///
	/// ```
	/// quiesce::sync::Srcu::new().synchronize_expedited();
	/// ```
	pub fn synchronize_expedited(&self) {
		if !cfg!(quiesce_control) {
			// SAFETY: an initialised domain.
			unsafe { sys::quiesce_synchronize_srcu_expedited(self.place()) }
		}
	}

	/// Call a function after a grace period of the domain, in a thread of the library. It must not panic: the process aborts.
	///
	/// ```
	/// let domain = quiesce::sync::Srcu::new();
	/// domain.defer(|| println!("later"));
	/// domain.barrier();
	/// ```
	pub fn defer<F: FnOnce() + Send + 'static>(&self, function: F) {
		// Relaxed: read by the thread that drops the domain.
		if !self.deferred.load(Ordering::Relaxed) {
			self.deferred.store(true, Ordering::Relaxed);
		}
		// SAFETY: it may be called anywhere and at any time; a domain that is dropped waits for it.
		unsafe { Object::call_srcu(Object::new(function), self.place()) }
	}

	/// Wait until everything that was deferred before has been done; neither in a section of the domain nor in a deferred call.
	pub fn barrier(&self) {
		if let Some(domain) = self.domain.existing() {
			// SAFETY: an initialised domain.
			unsafe { sys::quiesce_srcu_barrier(domain) }
		}
	}

	/// Return a cookie, and start a grace period that will complete it.
	///
	/// ```
	/// let domain = quiesce::sync::Srcu::new();
	/// let cookie = domain.start();
	/// domain.synchronize();
	/// assert!(domain.is_complete(cookie));
	/// ```
	pub fn start(&self) -> SrcuCookie {
		// SAFETY: an initialised domain.
		SrcuCookie(unsafe { sys::quiesce_start_poll_synchronize_srcu(self.place()) })
	}

	/// Test whether the grace period of a cookie of this domain has completed.
	pub fn is_complete(&self, cookie: SrcuCookie) -> bool {
		// SAFETY: an initialised domain; a cookie of another domain makes the answer meaningless.
		cfg!(quiesce_control) || unsafe { sys::quiesce_poll_state_synchronize_srcu(self.place(), cookie.0) != 0 }
	}
}

impl Default for Srcu {
	fn default() -> Srcu {
		Srcu::new()
	}
}

impl Drop for Srcu {
	fn drop(&mut self) {
		if let Some(domain) = self.domain.take() {
			let domain = Ending(domain);
			if !*self.deferred.get_mut() {
				domain.end();
			} else if in_callback() {
				elsewhere(move || domain.wait_and_end());
			} else {
				domain.wait_and_end();
			}
		}
	}
}

impl fmt::Debug for Srcu {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("Srcu")
	}
}

/// A grace period of a domain: [`Srcu::start()`].
#[derive(Clone, Copy)]
pub struct SrcuCookie(sys::rcu_gp_seq);

impl fmt::Debug for SrcuCookie {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_tuple("SrcuCookie").field(&self.0.value).finish()
	}
}

/// A section of a domain: [`Srcu::read()`]. It may be sent to another thread, and stay over an `.await`.
///
/// ```
/// fn spawn<F: std::future::Future + Send + 'static>(_: F) {}
/// static DOMAIN: quiesce::sync::Srcu = quiesce::sync::Srcu::new();
/// spawn(async {
/// 	let section = DOMAIN.read();
/// 	std::future::ready(()).await;
/// 	drop(section);
/// });
/// ```
#[must_use = "the section ends where the guard is dropped"]
pub struct SrcuGuard<'a> {
	domain: &'a Srcu,
	index: i32,
}

impl Drop for SrcuGuard<'_> {
	#[inline]
	fn drop(&mut self) {
		// SAFETY: the index of the section, which ends once.
		unsafe { sys::quiesce_srcu_up_read(self.domain.place(), self.index) }
	}
}

impl fmt::Debug for SrcuGuard<'_> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("SrcuGuard")
	}
}

/// A value with a domain of its own: readers may keep it for long, and updaters wait for these readers alone.
///
/// ```
/// use quiesce::sync::SrcuCell;
///
/// let names = SrcuCell::new(vec!["a"]);
/// let old = names.read();
/// names.replace(vec!["b"]);
/// assert_eq!((old[0], names.read()[0]), ("a", "b"));
/// # drop(old);
/// ```
pub struct SrcuCell<T: Send + Sync + 'static> {
	domain: Srcu,
	object: AtomicPtr<Object<T>>,
	_owns: core::marker::PhantomData<T>,
}

// SAFETY: threads get references to the value (T: Sync), and drop values that others have stored (T: Send).
unsafe impl<T: Send + Sync + 'static> Sync for SrcuCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync + 'static> Send for SrcuCell<T> {}

impl<T: Send + Sync + 'static> SrcuCell<T> {
	/// Make a cell with a value.
	pub fn new(value: T) -> SrcuCell<T> {
		let object = AtomicPtr::new(Object::new(value));
		SrcuCell { domain: Srcu::new(), object, _owns: core::marker::PhantomData }
	}

	/// Enter a section, and return the present value in it.
	#[inline]
	pub fn read(&self) -> SrcuRef<'_, T> {
		let section = self.domain.read();
		// SAFETY: never null. An updater destroys the object after a grace period of the domain, which the section delays, wherever its
		// guard is, and also if that is leaked.
		SrcuRef { value: unsafe { &(*self.object.load(Ordering::Acquire)).value }, _section: section }
	}

	/// Replace the value; the old one is dropped after a grace period, in another thread.
	pub fn replace(&self, value: T) {
		struct Old<T>(*mut Object<T>);
		// SAFETY: it is the only pointer to the value, and T is Send.
		unsafe impl<T: Send> Send for Old<T> {}
		impl<T> Old<T> {
			fn destroy(self) {
				// SAFETY: no reader has the object any more.
				unsafe { Object::destroy(self.0) };
			}
		}
		let old = Old(self.object.swap(Object::new(value), Ordering::AcqRel));
		self.domain.defer(move || old.destroy());
	}

	/// Replace the value, wait for the readers of the old one, and return that; not while the caller itself has a section of this cell.
	///
	/// ```
	/// assert_eq!(quiesce::sync::SrcuCell::new(1).swap(2), 1);
	/// ```
	pub fn swap(&self, value: T) -> T {
		let old = self.object.swap(Object::new(value), Ordering::AcqRel);
		self.domain.synchronize();
		// SAFETY: no reader can find it any more, and those that had have left.
		unsafe { Object::take(old) }
	}
}

impl<T: Send + Sync + 'static> Drop for SrcuCell<T> {
	fn drop(&mut self) {
		// SAFETY: readers borrow the cell, so there are none.
		unsafe { Object::destroy(*self.object.get_mut()) };
	}
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for SrcuCell<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.debug_tuple("SrcuCell").field(&*self.read()).finish()
	}
}

/// A value in a section: [`SrcuCell::read()`].
#[must_use = "the section ends where the guard is dropped"]
pub struct SrcuRef<'a, T> {
	value: &'a T,
	_section: SrcuGuard<'a>,
}

impl<T> Deref for SrcuRef<'_, T> {
	type Target = T;

	#[inline(always)]
	fn deref(&self) -> &T {
		self.value
	}
}

impl<T: fmt::Debug> fmt::Debug for SrcuRef<'_, T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		self.value.fmt(f)
	}
}
