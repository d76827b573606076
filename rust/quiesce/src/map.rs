// SPDX-License-Identifier: MIT
//! A hash table from 64-bit keys to 64-bit values: a lookup reads one cache line, and executes no locked instruction.

use crate::rcu::{read, Guard};
use core::fmt;
use core::marker::PhantomData;
use core::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use core::ptr::NonNull;
use quiesce_sys as sys;

/// A number that a [`HashMap`] stores: 64 bits that are never all zero, which means none.
///
/// ```
/// use quiesce::map::{HashMap, Value};
/// use std::num::NonZeroU64;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Port(u16);
///
/// impl Value for Port {
/// 	fn to_word(self) -> NonZeroU64 {
/// 		NonZeroU64::new(self.0 as u64 + 1).unwrap()
/// 	}
/// 	fn from_word(word: NonZeroU64) -> Port {
/// 		Port((word.get() - 1) as u16)
/// 	}
/// }
/// let ports: HashMap<u64, Port> = HashMap::new();
/// ports.insert(1, Port(0)).unwrap();
/// assert_eq!(ports.get(1), Some(Port(0)));
/// ```
pub trait Value: Copy {
	/// Return the word that stands for the value.
	fn to_word(self) -> NonZeroU64;
	/// Return the value that a word stands for; called with words of [`to_word()`](Value::to_word) only.
	fn from_word(word: NonZeroU64) -> Self;
}

impl Value for NonZeroU64 {
	fn to_word(self) -> NonZeroU64 {
		self
	}
	fn from_word(word: NonZeroU64) -> NonZeroU64 {
		word
	}
}

impl Value for NonZeroUsize {
	fn to_word(self) -> NonZeroU64 {
		// The library is for 64-bit CPUs only.
		NonZeroU64::new(self.get() as u64).unwrap_or(NonZeroU64::MIN)
	}
	fn from_word(word: NonZeroU64) -> NonZeroUsize {
		NonZeroUsize::new(word.get() as usize).unwrap_or(NonZeroUsize::MIN)
	}
}

impl Value for NonZeroU32 {
	fn to_word(self) -> NonZeroU64 {
		NonZeroU64::from(self)
	}
	fn from_word(word: NonZeroU64) -> NonZeroU32 {
		NonZeroU32::new(word.get() as u32).unwrap_or(NonZeroU32::MIN)
	}
}

macro_rules! small {
	($($number:ty),*) => { $(
		/// Stored with a bit above it, so that 0 is a value, too.
		impl Value for $number {
			fn to_word(self) -> NonZeroU64 {
				NonZeroU64::MIN | ((self as u64) << 1)
			}
			fn from_word(word: NonZeroU64) -> $number {
				(word.get() >> 1) as $number
			}
		}
	)* };
}
small!(u8, u16, u32, i8, i16, i32);

/// A call that needed memory and got none; the map is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("no memory for a key")
	}
}

impl std::error::Error for NoMemory {}

/// A map that all threads use without a lock around it.
///
/// Keys are numbers: `K` becomes a `u64`. Operations on one key are linearizable, also while the map grows; iterations are not.
///
/// ```
/// use quiesce::map::HashMap;
///
/// let ages: HashMap<u32, u32> = HashMap::new();
/// assert_eq!(ages.insert(7, 42), Ok(None));
/// assert_eq!(ages.get(7), Some(42));
/// assert_eq!(ages.remove(7), Some(42));
/// assert!(ages.is_empty());
/// ```
pub struct HashMap<K, V> {
	map: NonNull<sys::hashmap>, // a box, whose address its arrays have
	_keys: PhantomData<fn(K)>,
	_values: PhantomData<fn(V) -> V>,
}

// SAFETY: all calls may be made by any thread, and keys and values are numbers there; K and V are made in the calling thread.
unsafe impl<K, V> Send for HashMap<K, V> {}
// SAFETY: as above.
unsafe impl<K, V> Sync for HashMap<K, V> {}

const ENOENT: i32 = -2;
const EEXIST: i32 = -17;

impl<K: Into<u64>, V: Value> HashMap<K, V> {
	/// Make an empty map, with a random seed for its hash; it allocates its table at the first insertion.
	pub fn new() -> HashMap<K, V> {
		crate::fast::check_layout();
		// SAFETY: the structure has no invalid value.
		let map = NonNull::from(Box::leak(Box::<sys::hashmap>::new(unsafe { core::mem::zeroed() })));
		// SAFETY: the box's memory, which no other thread has.
		unsafe { sys::quiesce_hashmap_init(map.as_ptr()) };
		HashMap { map, _keys: PhantomData, _values: PhantomData }
	}

	/// Make an empty map with memory for `keys` keys, which it keeps.
	///
	/// ```
	/// # use quiesce::map::HashMap;
	/// let map: HashMap<u32, u32> = HashMap::with_capacity(1000).unwrap();
	/// ```
	pub fn with_capacity(keys: usize) -> Result<HashMap<K, V>, NoMemory> {
		let map = HashMap::new();
		// SAFETY: an initialised map.
		match unsafe { sys::quiesce_hashmap_reserve(map.place(), keys) } {
			0 => Ok(map),
			_ => Err(NoMemory),
		}
	}

	fn place(&self) -> *mut sys::hashmap {
		self.map.as_ptr()
	}

	/// Return the value of a key.
	#[inline]
	pub fn get(&self, key: K) -> Option<V> {
		self.get_in(key, &read())
	}

	/// Return the value of a key; for several lookups in one section.
	///
	/// ```
	/// # use quiesce::{map::HashMap, rcu};
	/// let map: HashMap<u32, u32> = HashMap::new();
	/// let guard = rcu::read();
	/// assert_eq!((map.get_in(1, &guard), map.get_in(2, &guard)), (None, None));
	/// ```
	#[inline]
	pub fn get_in(&self, key: K, _section: &Guard) -> Option<V> {
		// SAFETY: an initialised map, in a section.
		NonZeroU64::new(unsafe { sys::quiesce_hashmap_lookup(self.place(), key.into()) }).map(V::from_word)
	}

	/// Whether a key has a value.
	///
	/// ```
	/// # let map: quiesce::map::HashMap<u32, u32> = quiesce::map::HashMap::new();
	/// assert!(!map.contains_key(1));
	/// ```
	pub fn contains_key(&self, key: K) -> bool {
		self.get(key).is_some()
	}

	/// Give a key a value, and return the one that it had. A lookup finds one of them, never none.
	pub fn insert(&self, key: K, value: V) -> Result<Option<V>, NoMemory> {
		let mut old = 0;
		// SAFETY: an initialised map.
		match unsafe { sys::quiesce_hashmap_set(self.place(), key.into(), value.to_word().get(), &mut old) } {
			0 => Ok(NonZeroU64::new(old).map(V::from_word)),
			_ => Err(NoMemory),
		}
	}

	/// Give a key a value if it has none; return the one that it has.
	///
	/// ```
	/// # let map: quiesce::map::HashMap<u32, u32> = quiesce::map::HashMap::new();
	/// assert_eq!(map.try_insert(1, 10), Ok(None));
	/// assert_eq!(map.try_insert(1, 20), Ok(Some(10)));
	/// ```
	pub fn try_insert(&self, key: K, value: V) -> Result<Option<V>, NoMemory> {
		let mut existing = 0;
		// SAFETY: an initialised map.
		match unsafe { sys::quiesce_hashmap_insert(self.place(), key.into(), value.to_word().get(), &mut existing) } {
			0 => Ok(None),
			EEXIST => Ok(NonZeroU64::new(existing).map(V::from_word)),
			_ => Err(NoMemory),
		}
	}

	/// Give a key the value `new` if it has the value `old`; return whether it had.
	///
	/// ```
	/// # let map: quiesce::map::HashMap<u32, u32> = quiesce::map::HashMap::new();
	/// map.insert(1, 10).unwrap();
	/// assert!(map.compare_exchange(1, 10, 11) && !map.compare_exchange(1, 10, 12));
	/// ```
	pub fn compare_exchange(&self, key: K, old: V, new: V) -> bool {
		let (old, new) = (old.to_word().get(), new.to_word().get());
		// SAFETY: an initialised map.
		unsafe { sys::quiesce_hashmap_replace(self.place(), key.into(), old, new) == 0 }
	}

	/// Give a key the value that a function makes of the present one; the function is called again if another thread changes that
	/// meanwhile. Return the new value.
	///
	/// ```
	/// # let map: quiesce::map::HashMap<u32, u32> = quiesce::map::HashMap::new();
	/// for _ in 0..3 {
	/// 	map.update(1, |count| count.unwrap_or(0) + 1).unwrap();
	/// }
	/// assert_eq!(map.get(1), Some(3));
	/// ```
	pub fn update(&self, key: K, mut function: impl FnMut(Option<V>) -> V) -> Result<V, NoMemory> {
		let key = key.into();
		let map = self.place();
		// SAFETY: an initialised map, in a section.
		let mut found = {
			let _section = read();
			unsafe { sys::quiesce_hashmap_lookup(map, key) }
		};
		loop {
			let new = function(NonZeroU64::new(found).map(V::from_word));
			let word = new.to_word().get();
			let mut existing = 0;
			// SAFETY: an initialised map; the lookup is in a section.
			let result = unsafe {
				if found == 0 {
					sys::quiesce_hashmap_insert(map, key, word, &mut existing)
				} else {
					let result = sys::quiesce_hashmap_replace(map, key, found, word);
					if result == ENOENT {
						let _section = read();
						existing = sys::quiesce_hashmap_lookup(map, key);
					}
					result
				}
			};
			match result {
				0 => return Ok(new),
				EEXIST | ENOENT => found = existing,
				_ => return Err(NoMemory),
			}
		}
	}

	/// Remove a key, and return the value that it had.
	pub fn remove(&self, key: K) -> Option<V> {
		// SAFETY: an initialised map.
		NonZeroU64::new(unsafe { sys::quiesce_hashmap_remove(self.place(), key.into()) }).map(V::from_word)
	}

	/// Remove a key if it has the value `value`; return whether it had.
	///
	/// ```
	/// # let map: quiesce::map::HashMap<u32, u32> = quiesce::map::HashMap::new();
	/// assert!(!map.remove_value(1, 10));
	/// ```
	pub fn remove_value(&self, key: K, value: V) -> bool {
		// SAFETY: an initialised map.
		unsafe { sys::quiesce_hashmap_remove_value(self.place(), key.into(), value.to_word().get()) == 0 }
	}

	/// Remove all keys that are in the map at the call.
	///
	/// ```
	/// # let map: quiesce::map::HashMap<u32, u32> = quiesce::map::HashMap::new();
	/// map.clear();
	/// ```
	pub fn clear(&self) {
		// SAFETY: an initialised map.
		unsafe { sys::quiesce_hashmap_clear(self.place()) }
	}

	/// Return the number of keys that have a value; exact while no thread updates the map.
	pub fn len(&self) -> usize {
		// SAFETY: an initialised map.
		unsafe { sys::quiesce_hashmap_count(self.place()) }
	}

	/// Whether no key has a value, as exactly as [`len()`](HashMap::len).
	pub fn is_empty(&self) -> bool {
		self.len() == 0
	}

	/// Iterate over all pairs, in no order. A key that is in the map throughout is visited once.
	///
	/// ```
	/// use quiesce::{map::HashMap, rcu};
	///
	/// let map: HashMap<u32, u32> = HashMap::new();
	/// map.insert(1, 10).unwrap();
	/// assert_eq!(map.iter(&rcu::read()).collect::<Vec<_>>(), [(1, 10)]);
	/// ```
	pub fn iter<'a>(&'a self, _section: &'a Guard) -> Iter<'a, K, V> {
		// SAFETY: all-zero memory is the beginning of an iteration.
		Iter { map: self, position: unsafe { core::mem::zeroed() }, _section: PhantomData }
	}
}

impl<K: Into<u64>, V: Value> Default for HashMap<K, V> {
	fn default() -> HashMap<K, V> {
		HashMap::new()
	}
}

impl<K, V> Drop for HashMap<K, V> {
	fn drop(&mut self) {
		// SAFETY: an initialised map that no thread uses any more, in the box that new() has leaked.
		unsafe {
			sys::quiesce_hashmap_destroy(self.map.as_ptr());
			drop(Box::from_raw(self.map.as_ptr()));
		}
	}
}

impl<K, V> fmt::Debug for HashMap<K, V> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("HashMap")
	}
}

/// The pairs of a map, with keys as numbers: [`HashMap::iter()`].
pub struct Iter<'a, K, V> {
	map: &'a HashMap<K, V>,
	position: sys::hashmap_iter,
	_section: PhantomData<&'a Guard>,
}

impl<K: Into<u64>, V: Value> Iterator for Iter<'_, K, V> {
	type Item = (u64, V);

	fn next(&mut self) -> Option<(u64, V)> {
		let (mut key, mut value) = (0, 0);
		// SAFETY: an initialised map, in a section, which the borrow of the guard keeps open.
		let more = unsafe { sys::quiesce_hashmap_next(self.map.place(), &mut self.position, &mut key, &mut value) };
		if !more {
			return None;
		}
		NonZeroU64::new(value).map(|value| (key, V::from_word(value)))
	}
}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
	fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
		f.write_str("Iter")
	}
}
