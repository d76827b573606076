// SPDX-License-Identifier: MIT
//! Objects that the library reclaims: a value behind the two words by which it is queued, in memory of `malloc()`.
//!
//! The words are in the object, so that retiring it allocates nothing; and the memory is of `malloc()`, so that the library frees the objects
//! of types without a destructor itself, in the thread that retired them, while they are in its cache.

use core::cell::Cell;
use core::ffi::c_void;
use core::mem::{align_of, needs_drop, size_of};
use core::ptr;
use quiesce_sys as sys;
use std::alloc::{handle_alloc_error, Layout};

extern "C" {
	fn malloc(size: usize) -> *mut c_void;
	fn posix_memalign(ret: *mut *mut c_void, align: usize, size: usize) -> i32;
	fn free(object: *mut c_void);
}

/// The alignment that `malloc()` promises.
const MALLOC_ALIGN: usize = 16;

/// The words are those of `rcu_head` and of `hazptr_head`, which have the same form; a pointer to the object is a pointer to them.
#[repr(C, align(8))]
pub(crate) struct Object<T> {
	head: [usize; 2],
	pub(crate) value: T,
}

const _: () = assert!(size_of::<sys::rcu_head>() == 16 && size_of::<sys::hazptr_head>() == 16);

/// Aborts the process when a panic unwinds over it: no panic may leave a callback of the library.
struct Bomb;

impl Drop for Bomb {
	fn drop(&mut self) {
		eprintln!("quiesce: a panic in a deferred call or a destructor that was deferred");
		std::process::abort();
	}
}

thread_local! {
	/// The number of callbacks of this crate that the thread is in.
	static CALLBACKS: Cell<u32> = const { Cell::new(0) };
}

/// Whether the thread is in a deferred call, a deferred destructor, or the release of a count. There the library refuses to wait for others.
pub(crate) fn in_callback() -> bool {
	CALLBACKS.with(Cell::get) != 0
}

/// Call a function for the library, and abort if it panics.
pub(crate) fn without_unwinding<R>(function: impl FnOnce() -> R) -> R {
	let bomb = Bomb;
	CALLBACKS.with(|number| number.set(number.get() + 1));
	let result = function();
	CALLBACKS.with(|number| number.set(number.get() - 1));
	core::mem::forget(bomb);
	result
}

impl<T> Object<T> {
	pub(crate) fn new(value: T) -> *mut Object<T> {
		crate::fast::check_layout();
		let layout = Layout::new::<Object<T>>();
		// SAFETY: the size is not 0, and the alignment a power of two of at least a pointer's size.
		let memory = unsafe {
			if layout.align() <= MALLOC_ALIGN {
				malloc(layout.size())
			} else {
				let mut memory = ptr::null_mut();
				if posix_memalign(&mut memory, layout.align(), layout.size()) == 0 {
					memory
				} else {
					ptr::null_mut()
				}
			}
		};
		if memory.is_null() {
			handle_alloc_error(layout);
		}
		let object = memory as *mut Object<T>;
		// SAFETY: fresh memory of this layout.
		unsafe { object.write(Object { head: [0; 2], value }) };
		object
	}

	/// Move the value out, and free the memory.
	///
	/// # Safety
	/// `object` is from `new()`, and the caller its only owner.
	pub(crate) unsafe fn take(object: *mut Object<T>) -> T {
		// SAFETY: the caller's promise. The memory is freed as memory only.
		unsafe {
			let value = ptr::addr_of!((*object).value).read();
			free(object as *mut c_void);
			value
		}
	}

	/// Drop the value where it is, and free the memory.
	///
	/// # Safety
	/// As for `take()`.
	pub(crate) unsafe fn destroy(object: *mut Object<T>) {
		// SAFETY: the caller's promise.
		unsafe {
			ptr::drop_in_place(ptr::addr_of_mut!((*object).value));
			free(object as *mut c_void);
		}
	}

	/// Retire an object: it is destroyed after a grace period of RCU.
	///
	/// # Safety
	/// As for `take()`, but readers that found it before may still be in their sections; its value may be dropped in another thread, and at
	/// any later time.
	pub(crate) unsafe fn retire_rcu(object: *mut Object<T>) {
		if cfg!(quiesce_control) {
			// SAFETY: none. The control of the tests does not wait for readers, which has to make them fail.
			unsafe { Object::destroy(object) };
		} else if needs_drop::<T>() {
			// SAFETY: the caller's promise; the words are the object's, and not in use.
			unsafe { sys::quiesce_call_rcu(object as *mut sys::rcu_head, Some(drop_rcu::<T>), size_of::<Self>()) }
		} else {
			// SAFETY: as above, and the memory is of malloc().
			unsafe { sys::quiesce_kfree_rcu(object as *mut c_void, 0, size_of::<Self>()) }
		}
	}

	/// Retire an object: it is destroyed once no hazard pointer protects its address.
	///
	/// # Safety
	/// As for `retire_rcu()`, with protections in place of sections.
	pub(crate) unsafe fn retire_hazard(object: *mut Object<T>) {
		if cfg!(quiesce_control) {
			// SAFETY: none, as above.
			unsafe { Object::destroy(object) };
		} else if needs_drop::<T>() {
			let head = object as *mut sys::hazptr_head;
			// SAFETY: the caller's promise; the words are the object's, and not in use.
			unsafe { sys::quiesce_call_hazptr_inline(head, Some(drop_hazard::<T>), size_of::<Self>()) }
		} else {
			// SAFETY: as above, and the memory is of malloc().
			unsafe { sys::quiesce_kfree_hazptr(object as *mut c_void, 0, size_of::<Self>()) }
		}
	}
}

impl<F: FnOnce()> Object<F> {
	/// Call the function after a grace period of RCU.
	///
	/// # Safety
	/// The object is fresh, and the function may be called in any thread and at any later time.
	pub(crate) unsafe fn call_rcu(object: *mut Object<F>) {
		if cfg!(quiesce_control) {
			// SAFETY: none, as above.
			unsafe { (Object::take(object))() };
		} else {
			// SAFETY: the caller's promise; the words are the object's.
			unsafe { sys::quiesce_call_rcu(object as *mut sys::rcu_head, Some(call::<F>), size_of::<Self>()) }
		}
	}

	/// Call the function after a grace period of a domain of SRCU.
	///
	/// # Safety
	/// As for `call_rcu()`; the domain is usable, and stays so until its callbacks have run.
	pub(crate) unsafe fn call_srcu(object: *mut Object<F>, domain: *mut sys::srcu_struct) {
		if cfg!(quiesce_control) {
			// SAFETY: none, as above.
			unsafe { (Object::take(object))() };
		} else {
			// SAFETY: the caller's promise; the words are the object's.
			unsafe { sys::quiesce_call_srcu(domain, object as *mut sys::rcu_head, Some(call::<F>), size_of::<Self>()) }
		}
	}
}

unsafe extern "C" fn drop_rcu<T>(head: *mut sys::rcu_head) {
	// SAFETY: the library calls it once for an object that retire_rcu() was given, and no reader has it any more.
	without_unwinding(|| unsafe { Object::destroy(head as *mut Object<T>) });
}

unsafe extern "C" fn drop_hazard<T>(head: *mut sys::hazptr_head) {
	// SAFETY: the library calls it once for an object that retire_hazard() was given, and no slot protects it any more.
	without_unwinding(|| unsafe { Object::destroy(head as *mut Object<T>) });
}

unsafe extern "C" fn call<F: FnOnce()>(head: *mut sys::rcu_head) {
	// SAFETY: the library calls it once for an object that call_rcu() or call_srcu() was given.
	without_unwinding(|| unsafe { Object::take(head as *mut Object<F>) }());
}

const _: () = assert!(align_of::<Object<u8>>() == 8);
