// SPDX-License-Identifier: MIT
//! The inline code of readers, as `quiesce/detail/rcu_read.h` and `quiesce/detail/hazptr.h` have it for C.
//!
//! On x86-64 a section of RCU is a few instructions on the library's thread-local word. Stable Rust has no thread-local variables of
//! another language, so assembly finds the word: its distance from the thread pointer is in an entry of the global offset table, where the
//! linker of a program puts a constant in place of the load. Other CPUs, and the feature `debug`, call the library.

use quiesce_sys as sys;

#[cfg(all(target_arch = "x86_64", not(feature = "debug")))]
mod imp {
	use super::sys;
	use core::arch::asm;
	use core::mem::offset_of;
	use core::sync::atomic::{compiler_fence, AtomicU64, Ordering};

	const DEPTH: u64 = sys::QUIESCE_RCU_DEPTH as u64;
	// The word is the first field, so that the distance of the block is that of the word.
	const _: () = assert!(offset_of!(sys::quiesce_tls_v1, rcu_word) == 0);
	const _: () = assert!(DEPTH == 0x1fff);

	/// The distance of the thread's word from the thread pointer, a constant of the process.
	#[inline(always)]
	fn offset() -> u64 {
		let offset;
		// SAFETY: the symbol is the library's, and of the model initial-exec, whose entry the linker makes.
		unsafe {
			asm!("mov {}, qword ptr [rip + quiesce_tls_v1@GOTTPOFF]", out(reg) offset,
				options(pure, nomem, nostack, preserves_flags));
		}
		offset
	}

	#[inline(always)]
	fn load(offset: u64) -> u64 {
		let word;
		// SAFETY: the word of the calling thread. Not `pure`: a load is never moved over a change of the thread.
		unsafe {
			asm!("mov {}, qword ptr fs:[{}]", out(reg) word, in(reg) offset, options(nostack, preserves_flags, readonly));
		}
		word
	}

	/// The compiler moves no access of memory over it.
	#[inline(always)]
	fn store(offset: u64, word: u64) {
		// SAFETY: only the thread itself, and the library for it, store a reader's word.
		unsafe { asm!("mov qword ptr fs:[{}], {}", in(reg) offset, in(reg) word, options(nostack, preserves_flags)) }
	}

	#[inline(always)]
	pub fn read_lock() {
		let (offset, word) = {
			let offset = offset();
			(offset, load(offset))
		};
		if word as u16 == 0 {
			// SAFETY: a word of the library that exists as long as the process, and that all sides access atomically.
			let gp = unsafe { AtomicU64::from_ptr(core::ptr::addr_of!(sys::quiesce_rcu_v1.gp) as *mut u64) };
			// Relaxed: an old number only makes an updater wait for this section needlessly.
			store(offset, gp.load(Ordering::Relaxed));
		} else if (word & DEPTH).wrapping_sub(1) < DEPTH - 2 {
			store(offset, word + 1);
		} else {
			// SAFETY: any thread may enter a section.
			unsafe { sys::quiesce__rcu_lock_slow(sys::QUIESCE_LAYOUT) }
		}
		// RU1 of quiesce/detail/rcu_read.h: the updater's membarrier makes it a fence of the CPU.
		compiler_fence(Ordering::SeqCst);
	}

	/// # Safety
	/// The thread is in a section.
	#[inline(always)]
	pub unsafe fn read_unlock() {
		compiler_fence(Ordering::SeqCst);
		let offset = offset();
		let word = load(offset);
		if word as u16 == 1 {
			// RU2: each store is a release on this CPU.
			store(offset, 0);
		} else if (word & DEPTH) > 1 {
			store(offset, word - 1);
		} else {
			// SAFETY: the caller's promise.
			unsafe { sys::quiesce__rcu_unlock_slow() }
		}
	}
}

#[cfg(all(not(target_arch = "x86_64"), not(feature = "debug")))]
mod imp {
	use super::sys;

	#[inline(always)]
	pub fn read_lock() {
		// SAFETY: any thread may enter a section.
		unsafe { sys::quiesce_rcu_read_lock() }
	}

	/// # Safety
	/// The thread is in a section.
	#[inline(always)]
	pub unsafe fn read_unlock() {
		// SAFETY: the caller's promise.
		unsafe { sys::quiesce_rcu_read_unlock() }
	}
}

#[cfg(feature = "debug")]
mod imp {
	use super::sys;

	#[inline(always)]
	pub fn read_lock() {
		// SAFETY: any thread may enter a section.
		unsafe { sys::quiesce__rcu_lock_debug(sys::QUIESCE_LAYOUT) }
	}

	/// # Safety
	/// The thread is in a section.
	#[inline(always)]
	pub unsafe fn read_unlock() {
		// SAFETY: the caller's promise.
		unsafe { sys::quiesce__rcu_unlock_debug() }
	}
}

pub(crate) use imp::{read_lock, read_unlock};

/// Whether the calling thread is in a section of RCU.
pub(crate) fn in_section() -> bool {
	// SAFETY: no condition.
	unsafe { sys::quiesce_rcu_read_lock_held() != 0 }
}

/// Compare the layout stamps of the crate and of an installed library, which aborts if they differ. Sections, locks, domains and counts compare
/// them by themselves; slots, objects, tables and switches do not.
#[cfg(feature = "system")]
#[inline]
pub(crate) fn check_layout() {
	static CHECKED: std::sync::Once = std::sync::Once::new();
	CHECKED.call_once(|| {
		// SAFETY: any thread may enter a section, and leaves it.
		unsafe {
			sys::quiesce__rcu_lock_debug(sys::QUIESCE_LAYOUT);
			sys::quiesce__rcu_unlock_debug();
		}
	});
}

/// The library that is built with the crate has its layout.
#[cfg(not(feature = "system"))]
#[inline(always)]
pub(crate) fn check_layout() {}

/// Load a pointer, and let `slot` protect what it points to.
///
/// # Safety
/// The caller owns `slot`, and nothing else uses the protection that it had.
#[inline(always)]
pub(crate) unsafe fn hazard_protect<T>(slot: *mut sys::hazptr_slot, from: &core::sync::atomic::AtomicPtr<T>) -> *mut T {
	#[cfg(all(target_arch = "x86_64", not(feature = "debug")))]
	{
		use core::sync::atomic::{compiler_fence, AtomicU64, AtomicUsize, Ordering};
		// SAFETY: a word of the library that exists as long as the process, and that all sides access atomically.
		let slow = unsafe { AtomicU64::from_ptr(core::ptr::addr_of!(sys::quiesce_shazptr_v1.hazptr_slow) as *mut u64) };
		// Relaxed: a scan repeats its request for a slot that misses it; the mode of fences is fixed before the first use.
		if slow.load(Ordering::Relaxed) == 0 {
			// Relaxed: only the second load is used.
			let first = from.load(Ordering::Relaxed);
			// SAFETY: the caller owns the slot, which scans load atomically.
			let value = unsafe { AtomicUsize::from_ptr(core::ptr::addr_of_mut!((*slot).value)) };
			value.store(first as usize, Ordering::Release);
			// HP1 of quiesce/detail/hazptr.h: the scan's membarrier makes it a fence of the CPU.
			compiler_fence(Ordering::SeqCst);
			let again = from.load(Ordering::Acquire);
			if again == first {
				return again;
			}
		}
	}
	// SAFETY: the caller's promise; an AtomicPtr has the layout of a pointer.
	unsafe { sys::quiesce_hazptr_protect(slot, from.as_ptr() as *mut *mut core::ffi::c_void, 0) as *mut T }
}
