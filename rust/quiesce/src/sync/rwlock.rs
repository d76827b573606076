// SPDX-License-Identifier: MIT
//! A reader-writer lock whose readers share no cache line.

use super::lazy::Lazy;
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use quiesce_sys as sys;

/// The lock alone: [`PercpuRwLock`] has the value that it guards. With the feature `lock_api` it is a raw lock of that crate.
pub struct RawPercpuRwLock {
	lock: Lazy<sys::percpu_rw_semaphore>,
}

// SAFETY: it is a lock.
unsafe impl Send for RawPercpuRwLock {}
// SAFETY: as above.
unsafe impl Sync for RawPercpuRwLock {}

fn make() -> Box<sys::percpu_rw_semaphore> {
	// SAFETY: all-zero memory is an unlocked lock.
	let mut lock: Box<sys::percpu_rw_semaphore> = Box::new(unsafe { core::mem::zeroed() });
	// SAFETY: the box's memory, which no other thread has. Without memory for counters the lock works, so the result does not matter.
	unsafe { sys::quiesce_percpu_init_rwsem(sys::QUIESCE_LAYOUT, &mut *lock) };
	lock
}

fn end(mut lock: Box<sys::percpu_rw_semaphore>) {
	let place: *mut sys::percpu_rw_semaphore = &mut *lock;
	// SAFETY: the box's memory. A lock with a leaked guard stays locked, and is leaked with it, as the library refuses to free it.
	unsafe {
		if sys::quiesce_percpu_is_read_locked(place) || sys::quiesce_percpu_is_write_locked(place) {
			core::mem::forget(lock);
		} else {
			sys::quiesce_percpu_free_rwsem(place);
		}
	}
}

fn nanoseconds(duration: Duration) -> u64 {
	u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl RawPercpuRwLock {
	const fn new() -> RawPercpuRwLock {
		RawPercpuRwLock { lock: Lazy::new() }
	}

	#[inline(always)]
	fn place(&self) -> *mut sys::percpu_rw_semaphore {
		self.lock.get(make, end)
	}

	#[inline]
	fn down_read(&self) {
		// SAFETY: an initialised lock.
		unsafe { sys::quiesce_percpu_down_read(self.place()) }
	}

	#[inline]
	fn try_down_read(&self) -> bool {
		// SAFETY: as above.
		unsafe { sys::quiesce_percpu_down_read_trylock(self.place()) }
	}

	fn down_read_for(&self, timeout: Duration) -> bool {
		// SAFETY: as above.
		unsafe { sys::quiesce_percpu_down_read_timeout(self.place(), nanoseconds(timeout)) }
	}

	/// # Safety
	/// The lock is held for reading, by the caller.
	#[inline]
	unsafe fn up_read(&self) {
		// SAFETY: the caller's promise; any thread may release it.
		unsafe { sys::quiesce_percpu_up_read(self.place()) }
	}

	fn down_write(&self) {
		// SAFETY: an initialised lock.
		unsafe {
			if cfg!(quiesce_control) {
				// The control of the tests lets a writer in beside readers: it does not acquire the lock.
				return;
			}
			sys::quiesce_percpu_down_write(self.place())
		}
	}

	fn down_write_for(&self, timeout: Duration) -> bool {
		// SAFETY: as above.
		cfg!(quiesce_control) || unsafe { sys::quiesce_percpu_down_write_timeout(self.place(), nanoseconds(timeout)) }
	}

	/// # Safety
	/// The lock is held for writing, by the caller.
	unsafe fn up_write(&self) {
		if !cfg!(quiesce_control) {
			// SAFETY: the caller's promise; any thread may release it.
			unsafe { sys::quiesce_percpu_up_write(self.place()) }
		}
	}

	fn is_locked(&self) -> bool {
		self.lock.existing().is_some_and(|place| {
			// SAFETY: an initialised lock.
			unsafe { sys::quiesce_percpu_is_read_locked(place) || sys::quiesce_percpu_is_write_locked(place) }
		})
	}
}

impl Drop for RawPercpuRwLock {
	fn drop(&mut self) {
		if let Some(lock) = self.lock.take() {
			end(lock);
		}
	}
}

/// The form of `lock_api::RwLock`.
///
/// ```
/// type RwLock<T> = lock_api::RwLock<quiesce::sync::RawPercpuRwLock, T>;
///
/// static LIMIT: RwLock<u32> = RwLock::new(1);
/// *LIMIT.write() += 1;
/// assert_eq!(*LIMIT.read(), 2);
/// ```
// SAFETY: writers exclude all others. Any thread may release what another one acquired, so guards are Send.
#[cfg(feature = "lock_api")]
unsafe impl lock_api::RawRwLock for RawPercpuRwLock {
	#[allow(clippy::declare_interior_mutable_const)]
	const INIT: RawPercpuRwLock = RawPercpuRwLock::new();
	type GuardMarker = lock_api::GuardSend;

	#[inline]
	fn lock_shared(&self) {
		self.down_read();
	}

	#[inline]
	fn try_lock_shared(&self) -> bool {
		self.try_down_read()
	}

	#[inline]
	unsafe fn unlock_shared(&self) {
		// SAFETY: the caller's promise.
		unsafe { self.up_read() }
	}

	fn lock_exclusive(&self) {
		self.down_write();
	}

	fn try_lock_exclusive(&self) -> bool {
		self.down_write_for(Duration::ZERO)
	}

	unsafe fn unlock_exclusive(&self) {
		// SAFETY: the caller's promise.
		unsafe { self.up_write() }
	}

	fn is_locked(&self) -> bool {
		RawPercpuRwLock::is_locked(self)
	}
}

/// A reader-writer lock for values that are rarely written: readers count in memory of their CPU, and a writer pays for all.
///
/// The first write after some milliseconds without one costs a membarrier; in a burst of writes readers are slower. Neither side starves
/// the other. The lock is not recursive: a thread that reads, and reads again, waits for ever if a writer came in between. There is no
/// poisoning: a panic releases the lock.
///
/// ```
/// use quiesce::sync::PercpuRwLock;
///
/// static LIMITS: PercpuRwLock<Vec<u32>> = PercpuRwLock::new(Vec::new());
/// LIMITS.write().push(3);
/// assert_eq!(LIMITS.read()[0], 3);
/// ```
///
/// ```compile_fail,E0505
/// # use quiesce::sync::PercpuRwLock;
/// let lock = PercpuRwLock::new(1);
/// let guard = lock.read();
/// drop(lock);
/// assert_eq!(*guard, 1);
/// ```
pub struct PercpuRwLock<T: ?Sized> {
	raw: RawPercpuRwLock,
	value: UnsafeCell<T>,
}

// SAFETY: the lock gives references to several readers (T: Sync), or one to a writer in any thread (T: Send).
unsafe impl<T: ?Sized + Send + Sync> Sync for PercpuRwLock<T> {}
// SAFETY: the lock itself may be sent.
unsafe impl<T: ?Sized + Send> Send for PercpuRwLock<T> {}

impl<T> PercpuRwLock<T> {
	/// Make an unlocked lock; its counters are allocated at its first use.
	pub const fn new(value: T) -> PercpuRwLock<T> {
		PercpuRwLock { raw: RawPercpuRwLock::new(), value: UnsafeCell::new(value) }
	}

	/// Return the value, and end the lock.
	///
	/// ```
	/// assert_eq!(quiesce::sync::PercpuRwLock::new(1).into_inner(), 1);
	/// ```
	pub fn into_inner(self) -> T {
		self.value.into_inner()
	}
}

impl<T: ?Sized> PercpuRwLock<T> {
	/// Acquire the lock for reading.
	#[inline]
	pub fn read(&self) -> PercpuReadGuard<'_, T> {
		self.raw.down_read();
		PercpuReadGuard { lock: self }
	}

	/// Acquire the lock for reading, unless a writer has it or is next.
	///
	/// ```
	/// # let lock = quiesce::sync::PercpuRwLock::new(1);
	/// let writer = lock.write();
	/// assert!(lock.try_read().is_none());
	/// # drop(writer);
	/// ```
	#[inline]
	pub fn try_read(&self) -> Option<PercpuReadGuard<'_, T>> {
		self.raw.try_down_read().then(|| PercpuReadGuard { lock: self })
	}

	/// Acquire the lock for reading, waiting at most `timeout`.
	///
	/// ```
	/// # use std::time::Duration;
	/// let lock = quiesce::sync::PercpuRwLock::new(1);
	/// assert!(lock.try_read_for(Duration::from_millis(1)).is_some());
	/// ```
	pub fn try_read_for(&self, timeout: Duration) -> Option<PercpuReadGuard<'_, T>> {
		self.raw.down_read_for(timeout).then(|| PercpuReadGuard { lock: self })
	}

	/// Acquire the lock for writing.
	pub fn write(&self) -> PercpuWriteGuard<'_, T> {
		self.raw.down_write();
		PercpuWriteGuard { lock: self }
	}

	/// Acquire the lock for writing, without waiting for readers or a writer.
	///
	/// ```
	/// # let lock = quiesce::sync::PercpuRwLock::new(1);
	/// let reader = lock.read();
	/// assert!(lock.try_write().is_none());
	/// # drop(reader);
	/// ```
	pub fn try_write(&self) -> Option<PercpuWriteGuard<'_, T>> {
		self.try_write_for(Duration::ZERO)
	}

	/// Acquire the lock for writing, waiting for other threads at most `timeout`.
	///
	/// ```
	/// # use std::time::Duration;
	/// let lock = quiesce::sync::PercpuRwLock::new(1);
	/// assert!(lock.try_write_for(Duration::from_secs(1)).is_some());
	/// ```
	pub fn try_write_for(&self, timeout: Duration) -> Option<PercpuWriteGuard<'_, T>> {
		self.raw.down_write_for(timeout).then(|| PercpuWriteGuard { lock: self })
	}

	/// Return the value of a lock that no other thread has.
	///
	/// ```
	/// # let mut lock = quiesce::sync::PercpuRwLock::new(1);
	/// *lock.get_mut() = 2;
	/// ```
	pub fn get_mut(&mut self) -> &mut T {
		self.value.get_mut()
	}

	/// Whether the lock is held at this moment, for assertions.
	///
	/// ```
	/// assert!(!quiesce::sync::PercpuRwLock::new(1).is_locked());
	/// ```
	pub fn is_locked(&self) -> bool {
		self.raw.is_locked()
	}
}

impl<T: Default> Default for PercpuRwLock<T> {
	fn default() -> PercpuRwLock<T> {
		PercpuRwLock::new(T::default())
	}
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PercpuRwLock<T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		match self.try_read() {
			Some(guard) => f.debug_tuple("PercpuRwLock").field(&&*guard).finish(),
			None => f.write_str("PercpuRwLock(<locked>)"),
		}
	}
}

/// A lock that is held for reading: [`PercpuRwLock::read()`].
#[must_use = "the lock is released where the guard is dropped"]
pub struct PercpuReadGuard<'a, T: ?Sized> {
	lock: &'a PercpuRwLock<T>,
}

// The reference to the lock makes it Send and Sync if T is both. Any thread may release the lock.

impl<T: ?Sized> Deref for PercpuReadGuard<'_, T> {
	type Target = T;

	#[inline(always)]
	fn deref(&self) -> &T {
		// SAFETY: no writer is inside.
		unsafe { &*self.lock.value.get() }
	}
}

impl<T: ?Sized> Drop for PercpuReadGuard<'_, T> {
	#[inline]
	fn drop(&mut self) {
		// SAFETY: the guard holds the lock for reading.
		unsafe { self.lock.raw.up_read() }
	}
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PercpuReadGuard<'_, T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		(**self).fmt(f)
	}
}

/// A lock that is held for writing: [`PercpuRwLock::write()`].
///
/// ```compile_fail,E0277
/// # use quiesce::sync::PercpuRwLock;
/// static SHARED: PercpuRwLock<std::cell::Cell<u32>> = PercpuRwLock::new(std::cell::Cell::new(1));
/// ```
#[must_use = "the lock is released where the guard is dropped"]
pub struct PercpuWriteGuard<'a, T: ?Sized> {
	lock: &'a PercpuRwLock<T>,
}

impl<T: ?Sized> Deref for PercpuWriteGuard<'_, T> {
	type Target = T;

	fn deref(&self) -> &T {
		// SAFETY: no other holder is inside.
		unsafe { &*self.lock.value.get() }
	}
}

impl<T: ?Sized> DerefMut for PercpuWriteGuard<'_, T> {
	fn deref_mut(&mut self) -> &mut T {
		// SAFETY: no other holder is inside.
		unsafe { &mut *self.lock.value.get() }
	}
}

impl<T: ?Sized> Drop for PercpuWriteGuard<'_, T> {
	fn drop(&mut self) {
		// SAFETY: the guard holds the lock for writing.
		unsafe { self.lock.raw.up_write() }
	}
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PercpuWriteGuard<'_, T> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		(**self).fmt(f)
	}
}
