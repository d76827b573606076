// SPDX-License-Identifier: MIT
//! The tables: pairs of 64-bit numbers, one operation, one guard.
use crate::work::mix;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::RwLock;

/// The hash that quiesce's own comparison gives to every table.
#[derive(Default, Clone)]
pub struct Mix(u64);

impl Hasher for Mix {
	fn finish(&self) -> u64 {
		self.0
	}
	fn write(&mut self, bytes: &[u8]) {
		for byte in bytes {
			self.0 = mix(self.0 ^ u64::from(*byte));
		}
	}
	fn write_u64(&mut self, key: u64) {
		self.0 = mix(key);
	}
}

type Hash = BuildHasherDefault<Mix>;

pub trait Table: Sync {
	fn new() -> Self;
	/// The value; 0: there is none.
	fn lookup(&self, key: u64) -> u64;
	/// False: it is there already.
	fn insert(&self, key: u64, value: u64) -> bool;
	/// False: it is not there.
	fn remove(&self, key: u64) -> bool;
}

pub struct Quiesce(quiesce::map::HashMap<u64, std::num::NonZeroU64>);

impl Table for Quiesce {
	fn new() -> Self {
		Quiesce(quiesce::map::HashMap::new())
	}
	#[inline]
	fn lookup(&self, key: u64) -> u64 {
		self.0.get(key).map_or(0, |value| value.get())
	}
	fn insert(&self, key: u64, value: u64) -> bool {
		let value = std::num::NonZeroU64::new(value).expect("values are not 0");
		self.0.try_insert(key, value).expect("memory").is_none()
	}
	fn remove(&self, key: u64) -> bool {
		self.0.remove(key).is_some()
	}
}

pub struct Dash(dashmap::DashMap<u64, u64, Hash>);

impl Table for Dash {
	fn new() -> Self {
		Dash(dashmap::DashMap::with_hasher(Hash::default()))
	}
	#[inline]
	fn lookup(&self, key: u64) -> u64 {
		self.0.get(&key).map_or(0, |found| *found)
	}
	fn insert(&self, key: u64, value: u64) -> bool {
		self.0.insert(key, value).is_none()
	}
	fn remove(&self, key: u64) -> bool {
		self.0.remove(&key).is_some()
	}
}

pub struct SccIndex(scc::HashIndex<u64, u64, Hash>);

impl Table for SccIndex {
	fn new() -> Self {
		SccIndex(scc::HashIndex::with_hasher(Hash::default()))
	}
	#[inline]
	fn lookup(&self, key: u64) -> u64 {
		self.0.peek_with(&key, |_, value| *value).unwrap_or(0)
	}
	fn insert(&self, key: u64, value: u64) -> bool {
		self.0.insert(key, value).is_ok()
	}
	fn remove(&self, key: u64) -> bool {
		self.0.remove(&key)
	}
}

pub struct SccMap(scc::HashMap<u64, u64, Hash>);

impl Table for SccMap {
	fn new() -> Self {
		SccMap(scc::HashMap::with_hasher(Hash::default()))
	}
	#[inline]
	fn lookup(&self, key: u64) -> u64 {
		self.0.read(&key, |_, value| *value).unwrap_or(0)
	}
	fn insert(&self, key: u64, value: u64) -> bool {
		self.0.insert(key, value).is_ok()
	}
	fn remove(&self, key: u64) -> bool {
		self.0.remove(&key).is_some()
	}
}

pub struct Papaya(papaya::HashMap<u64, u64, Hash>);

impl Table for Papaya {
	fn new() -> Self {
		Papaya(papaya::HashMap::with_hasher(Hash::default()))
	}
	#[inline]
	fn lookup(&self, key: u64) -> u64 {
		self.0.pin().get(&key).copied().unwrap_or(0)
	}
	fn insert(&self, key: u64, value: u64) -> bool {
		self.0.pin().try_insert(key, value).is_ok()
	}
	fn remove(&self, key: u64) -> bool {
		self.0.pin().remove(&key).is_some()
	}
}

pub struct Std(RwLock<std::collections::HashMap<u64, u64, Hash>>);

impl Table for Std {
	fn new() -> Self {
		Std(RwLock::new(std::collections::HashMap::with_hasher(Hash::default())))
	}
	#[inline]
	fn lookup(&self, key: u64) -> u64 {
		self.0.read().expect("not poisoned").get(&key).copied().unwrap_or(0)
	}
	fn insert(&self, key: u64, value: u64) -> bool {
		self.0.write().expect("not poisoned").insert(key, value).is_none()
	}
	fn remove(&self, key: u64) -> bool {
		self.0.write().expect("not poisoned").remove(&key).is_some()
	}
}
