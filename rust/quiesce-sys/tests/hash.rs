// SPDX-License-Identifier: MIT
//! The library's hash of byte strings is XXH3, whichever code computes it.

#[test]
fn hash_is_xxh3() {
	// The values that xxHash's own tests have for no bytes, and that the C library gives for others.
	let hash =
		|bytes: &[u8], seed| unsafe { quiesce_sys::quiesce_hash_bytes(bytes.as_ptr().cast(), bytes.len(), seed) };
	assert_eq!(hash(b"", 0), 0x2d06800538d394c2);
	assert_ne!(hash(b"a", 0), hash(b"a", 1));
	let long: Vec<u8> = (0..=255).collect();
	for length in [1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 256] {
		assert_eq!(hash(&long[..length], 7), xxhash_rust::xxh3::xxh3_64_with_seed(&long[..length], 7));
	}
}

#[test]
fn version_is_that_of_the_crate() {
	let version = unsafe { core::ffi::CStr::from_ptr(quiesce_sys::quiesce_version()) };
	assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}
