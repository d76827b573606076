// SPDX-License-Identifier: MIT
//! The bindings that are committed are those of the headers; it needs libclang, without which `scripts/ci/rust.sh` omits it.

#[test]
fn bindings_are_those_of_the_headers() {
	let committed = std::fs::read_to_string(quiesce_bindgen::committed()).unwrap();
	let same = quiesce_bindgen::generated() == committed;
	assert!(same, "quiesce-sys/src/bindings.rs is of other headers: cargo run -p quiesce-bindgen");
}
