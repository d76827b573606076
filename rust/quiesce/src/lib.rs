// SPDX-License-Identifier: MIT
#![doc = include_str!("../README.md")]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]
#![allow(clippy::tabs_in_doc_comments)] // as everywhere else

// Without waits nothing here is sound.
#[cfg(all(quiesce_control, not(debug_assertions)))]
compile_error!("quiesce_control is for the tests of this crate, which have to fail with it");

mod fast;
pub mod hazard;
pub mod map;
mod object;
pub mod rcu;
pub mod shazptr;
pub mod sync;

/// A guide for programs that use crossbeam-epoch, arc-swap or `RwLock`.
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}

/// Return the version of the library that is linked, such as "0.3.0".
///
/// ```
/// assert!(quiesce::version().starts_with("0."));
/// ```
pub fn version() -> &'static str {
	// SAFETY: the library returns a constant string.
	let text = unsafe { core::ffi::CStr::from_ptr(quiesce_sys::quiesce_version()) };
	text.to_str().unwrap_or("")
}
