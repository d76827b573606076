// SPDX-License-Identifier: MIT
fn main() -> std::io::Result<()> {
	std::fs::write(quiesce_bindgen::committed(), quiesce_bindgen::generated())
}
