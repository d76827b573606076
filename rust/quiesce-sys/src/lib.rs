// SPDX-License-Identifier: MIT
#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

#[allow(missing_docs, non_camel_case_types, non_upper_case_globals, non_snake_case, clippy::all)]
mod bindings;
pub use bindings::*;

/// Parse a decimal number at compile time.
#[allow(dead_code)] // some versions of the compiler do not see the use below
const fn number(text: &str) -> u32 {
	let (text, mut value, mut i) = (text.as_bytes(), 0, 0);
	while i < text.len() {
		value = value * 10 + (text[i] - b'0') as u32;
		i += 1;
	}
	value
}

// The headers that belong to the library are those that the bindings were made from. At run time the library compares the same number
// wherever a thread registers or an object is initialised.
const _: () = assert!(
	number(env!("QUIESCE_SYS_LAYOUT")) == QUIESCE_LAYOUT,
	"quiesce-sys was made from other headers than those of the library: use the version of the crate that fits it"
);

/// XXH3 for the library that is built from the sources in the package (c/shim/xxhash.h).
///
/// # Safety
/// `start` points to `length` bytes; or `length` is 0.
#[cfg(not(feature = "system"))]
#[doc(hidden)]
#[no_mangle]
pub unsafe extern "C" fn quiesce_sys_xxh3(start: *const u8, length: usize, seed: u64) -> u64 {
	// SAFETY: the caller's promise. A slice needs an address even if it is empty.
	let bytes = if length == 0 { &[][..] } else { unsafe { core::slice::from_raw_parts(start, length) } };
	xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}
