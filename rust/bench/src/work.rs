// SPDX-License-Identifier: MIT
//! Keys and streams of work: the same numbers in the same order as tools/quiesce/hashscale/hashscale_keys.c makes them.

/// Above the 62 bits of a key: what to do with it; neither bit: look it up.
pub const INSERT: u64 = 1 << 62;
pub const REMOVE: u64 = 1 << 63;
pub const KEY: u64 = INSERT - 1;
/// In a key: it comes and goes.
pub const CHURNED: u64 = 1 << 61;

const BASE: u64 = CHURNED - 1;
const AWAY: usize = 16; // at most so many keys of a thread are removed at a time
const ZIPF: f64 = 0.99;
const CELL_THREADS: u64 = 1024;

pub fn value_of(key: u64) -> u64 {
	!key
}

pub fn mix(key: u64) -> u64 {
	let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
	product as u64 ^ (product >> 64) as u64
}

fn number(i: u64) -> u64 {
	let mut x = (i + 1) & BASE;
	x ^= x >> 31;
	x = x.wrapping_mul(0x9fb2_1c65_1e98_df25) & BASE;
	x ^= x >> 29;
	x = x.wrapping_mul(0xd1b5_4a32_d192_ed03) & BASE;
	x ^ x >> 32
}

pub fn keys(nr: u64) -> Vec<u64> {
	(0..nr).map(|i| number(i) | if i & 1 == 1 { CHURNED } else { 0 }).collect()
}

#[derive(Clone, Copy, PartialEq)]
pub enum Distribution {
	Uniform,
	Zipf,
	Hot,
}

struct Random(u64);

impl Random {
	fn next(&mut self) -> u64 {
		self.0 ^= self.0 << 13;
		self.0 ^= self.0 >> 7;
		self.0 ^= self.0 << 17;
		self.0
	}
}

/// Ranks by rejection from the area under x^-ZIPF, whose integral can be inverted.
struct Zipf {
	first: f64,
	range: f64,
}

fn integral(x: f64) -> f64 {
	x.powf(1.0 - ZIPF) / (1.0 - ZIPF)
}

impl Zipf {
	fn new(nr: usize) -> Self {
		let first = integral(1.5) - 1.0;
		Zipf { first, range: integral(nr as f64 + 0.5) - first }
	}

	fn rank(&self, random: &mut Random) -> u64 {
		loop {
			let fraction = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
			let u = self.first + fraction * self.range;
			let k = ((u * (1.0 - ZIPF)).powf(1.0 / (1.0 - ZIPF)) + 0.5).floor().max(1.0);
			if u >= integral(k + 0.5) - k.powf(-ZIPF) {
				return k as u64;
			}
		}
	}
}

/// What one thread of one round does.
pub struct Work<'a> {
	pub keys: &'a [u64],
	pub distribution: Distribution,
	pub updates: f64, // percent
	pub thread: u64,
	pub threads: u64,
	pub seed: u64,
}

impl Work<'_> {
	fn choose(&self, zipf: &Zipf, random: &mut Random) -> u64 {
		let nr = self.keys.len() as u64;
		match self.distribution {
			Distribution::Uniform => ((random.next() >> 32) * nr) >> 32,
			Distribution::Zipf => ((zipf.rank(random) - 1) % nr).wrapping_mul(2_654_435_761) % nr,
			Distribution::Hot => 0,
		}
	}

	/// The thread's own key that is next to @index: every second one churns, and the threads share those.
	fn own_key(&self, index: u64) -> u64 {
		let mut own = index / 2 / self.threads * self.threads + self.thread;
		while 2 * own + 1 >= self.keys.len() as u64 {
			own -= self.threads;
		}
		self.keys[(2 * own + 1) as usize]
	}

	/// At its end everything is there, so that it can begin again.
	pub fn stream(&self, nr: usize) -> Vec<u64> {
		let zipf = Zipf::new(self.keys.len());
		let mut random = Random(mix(self.seed * CELL_THREADS + self.thread + 1) | 1);
		let threshold = (self.updates / 100.0 * (1u64 << 32) as f64) as u64;
		let mut away = std::collections::VecDeque::new();
		let mut words = Vec::with_capacity(nr);
		for i in 0..nr {
			let left = nr - i;
			if !away.is_empty() && left <= away.len() {
				words.push(away.pop_front().unwrap_or(0) | INSERT);
			} else if threshold > 0 && random.next() >> 32 < threshold && left > away.len() + 1 {
				let key = self.own_key(self.choose(&zipf, &mut random));
				if away.len() == AWAY || away.contains(&key) || (!away.is_empty() && random.next() >> 63 == 1) {
					words.push(away.pop_front().unwrap_or(0) | INSERT);
				} else {
					away.push_back(key);
					words.push(key | REMOVE);
				}
			} else {
				words.push(self.keys[self.choose(&zipf, &mut random) as usize]);
			}
		}
		words
	}
}

/// How many keys are missing after the first @at words.
pub fn away_after(words: &[u64], at: usize) -> usize {
	let removed = words[..at].iter().filter(|w| **w & REMOVE != 0).count();
	removed - words[..at].iter().filter(|w| **w & INSERT != 0).count()
}
