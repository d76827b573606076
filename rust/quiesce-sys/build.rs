// SPDX-License-Identifier: MIT
//! Builds the library from the sources in the package, or, with the feature `system`, finds an installed one.
//!
//! The environment has no influence on the choice: what a program is linked with is in its Cargo.toml. The sources are those of the
//! bindings, so a library that does not fit them needs the feature.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
	let include = if cfg!(feature = "system") { system() } else { bundled() };
	let text = fs::read_to_string(include.join("quiesce/base.h")).expect("quiesce/base.h");
	let layout = text
		.lines()
		.find_map(|line| line.strip_prefix("#define QUIESCE_LAYOUT 0x"))
		.expect("quiesce/base.h defines QUIESCE_LAYOUT");
	let layout = u32::from_str_radix(layout.trim_end_matches('u'), 16).expect("QUIESCE_LAYOUT is a number");
	// src/lib.rs compares it with the number in the bindings.
	println!("cargo:rustc-env=QUIESCE_SYS_LAYOUT={layout}");
	println!("cargo:include={}", include.display());
	println!("cargo:rerun-if-changed=build.rs");
}

/// The sources that src/meson.build lists, without those of the simulated platform.
fn sources(src: &Path) -> Vec<PathBuf> {
	let list = fs::read_to_string(src.join("meson.build")).expect("c/src/meson.build");
	let names = list.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(|line| line.split('\''));
	names.filter(|name| name.ends_with(".c") && !name.starts_with("platform/sim/")).map(|name| src.join(name)).collect()
}

fn bundled() -> PathBuf {
	let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("c");
	let (include, src) = (root.join("include"), root.join("src"));
	let mut build = cc::Build::new();
	build.files(sources(&src)).include(&include).include(&src).include(root.join("shim"));
	build.std("gnu11").define("_GNU_SOURCE", "").pic(true).flag("-fvisibility=hidden").flag("-pthread");
	// The library is not tested without optimisation, and a program that is compiled for a debugger is not slower for it.
	build.opt_level(2);
	build.compile("quiesce");
	for changed in [&include, &src, &root.join("shim")] {
		println!("cargo:rerun-if-changed={}", changed.display());
	}
	include
}

#[cfg(feature = "system")]
fn system() -> PathBuf {
	// PKG_CONFIG_ALL_STATIC=1 and the other variables of the crate pkg-config apply.
	let version = env::var("CARGO_PKG_VERSION").unwrap();
	let library = pkg_config::Config::new().atleast_version(&version).probe("quiesce").expect("an installed quiesce");
	library
		.include_paths
		.into_iter()
		.chain([PathBuf::from("/usr/include"), PathBuf::from("/usr/local/include")])
		.find(|path| path.join("quiesce/base.h").is_file())
		.expect("the headers of the installed quiesce")
}

#[cfg(not(feature = "system"))]
fn system() -> PathBuf {
	unreachable!("only with the feature")
}
