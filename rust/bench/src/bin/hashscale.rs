// SPDX-License-Identifier: MIT
//! Concurrent tables of Rust at the work of `quiesce hashscale`; prints rows as it does with --json.
#[path = "../tables.rs"]
mod tables;
#[path = "../work.rs"]
mod work;

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tables::Table;
use work::{Distribution, Work};

const CHUNK: usize = 256;
const STREAM_WORDS: usize = 1 << 20;
const DISTURBED: f64 = 0.05;

struct Options {
	types: Vec<String>,
	threads: Vec<u64>,
	keys: Vec<u64>,
	updates: Vec<f64>,
	distribution: (Distribution, &'static str),
	seconds: f64,
	runs: u64,
	round: Option<u64>, // of a child
}

#[derive(Default)]
struct Tally {
	sum: u64,
	wrong: u64, // keys not found that were there, values of others, updates that found another state than was left
}

#[derive(Default)]
struct Lap {
	ns: f64,
	delay_ns: f64, // of them, the thread wanted to run and could not
	operations: u64,
	tally: Tally,
}

fn run<T: Table>(table: &T, words: &[u64], tally: &mut Tally) {
	for &word in words {
		let key = word & work::KEY;
		if word == key {
			let value = table.lookup(key);
			tally.sum = tally.sum.wrapping_add(value);
			tally.wrong += u64::from(value != work::value_of(key) && (value != 0 || key & work::CHURNED == 0));
		} else if word & work::REMOVE != 0 {
			tally.wrong += u64::from(!table.remove(key));
		} else {
			tally.wrong += u64::from(!table.insert(key, work::value_of(key)));
		}
	}
}

fn bind(index: u64) {
	// SAFETY: a set of bits that belongs to this thread, of the size that is told.
	unsafe {
		let (mut allowed, mut one): (libc::cpu_set_t, libc::cpu_set_t) = std::mem::zeroed();
		if libc::sched_getaffinity(libc::getpid(), std::mem::size_of_val(&allowed), &mut allowed) != 0 {
			return;
		}
		let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed)).collect();
		libc::CPU_SET(cpus[index as usize % cpus.len()], &mut one);
		libc::sched_setaffinity(0, std::mem::size_of_val(&one), &one);
	}
}

fn delay_ns() -> f64 {
	let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
	text.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(f64::NAN)
}

const WARM: u32 = 0;
const OVER: u32 = 2;

fn thread<T: Table>(table: &T, work: &Work, phase: &AtomicU32, gates: &[Barrier; 2], bound: bool) -> Lap {
	if bound {
		bind(work.thread);
	}
	let words = work.stream(STREAM_WORDS);
	let mut lap = Lap::default();
	let mut at = 0;
	let mut step = |lap: &mut Lap| {
		run(table, &words[at..at + CHUNK], &mut lap.tally);
		at = if at + CHUNK < words.len() { at + CHUNK } else { 0 };
	};
	gates[0].wait();
	while phase.load(Relaxed) == WARM {
		step(&mut lap);
	}
	let (begin, delay) = (Instant::now(), delay_ns());
	while phase.load(Relaxed) != OVER {
		step(&mut lap);
		lap.operations += CHUNK as u64;
	}
	lap.delay_ns = delay_ns() - delay;
	lap.ns = begin.elapsed().as_nanos() as f64;
	gates[1].wait();
	let mut away = work::away_after(&words, at);
	while away > 0 {
		if words[at] & work::INSERT != 0 {
			run(table, &words[at..=at], &mut lap.tally);
			away -= 1;
		}
		at += 1;
	}
	lap
}

fn pause(seconds: f64) {
	std::thread::sleep(Duration::from_secs_f64(seconds));
}

/// Operations per second of all threads, whether others took a CPU away, and what was wrong.
fn window<T: Table>(table: &T, keys: &[u64], o: &Options, threads: u64, updates: f64, seed: u64) -> (f64, bool, u64) {
	let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
	let (phase, bound) = (AtomicU32::new(WARM), threads <= cpus);
	let gates = [Barrier::new(threads as usize + 1), Barrier::new(threads as usize + 1)];
	let mut laps = Vec::new();
	let mut passed = 0.0;
	std::thread::scope(|scope| {
		let handles: Vec<_> = (0..threads)
			.map(|index| {
				let (phase, gates) = (&phase, &gates);
				let work = Work { keys, distribution: o.distribution.0, updates, thread: index, threads, seed };
				scope.spawn(move || thread(table, &work, phase, gates, bound))
			})
			.collect();
		gates[0].wait();
		pause(o.seconds / 2.0);
		phase.store(1, Relaxed);
		let begin = Instant::now();
		pause(o.seconds);
		phase.store(OVER, Relaxed);
		passed = begin.elapsed().as_nanos() as f64;
		gates[1].wait();
		laps.extend(handles.into_iter().map(|h| h.join().expect("a thread ends")));
	});
	let sum = |f: fn(&Lap) -> f64| laps.iter().map(f).sum::<f64>();
	let (operations, ns) = (sum(|l| l.operations as f64), sum(|l| l.ns));
	let delay = if bound { sum(|l| l.delay_ns) } else { 0.0 };
	let rate = if bound { operations * threads as f64 / (ns - delay) } else { operations / passed };
	let wrong = laps.iter().map(|l| l.tally.wrong).sum();
	std::hint::black_box(laps.iter().fold(0u64, |s, l| s.wrapping_add(l.tally.sum)));
	(rate * 1e9, delay > DISTURBED * ns, wrong)
}

fn allocated() -> f64 {
	// SAFETY: it only reads counters.
	let info = unsafe { libc::mallinfo2() };
	(info.uordblks + info.hblkhd) as f64
}

/// What a child prints, a line each.
#[derive(Clone, Copy)]
struct Sample {
	threads: u64,
	keys: u64,
	updates: f64,
	rate: f64,
	disturbed: bool,
	element_bytes: f64,
	fill_ns: f64,
	wrong: u64,
}

impl Sample {
	fn to_line(self) -> String {
		format!(
			"{} {} {} {} {} {} {} {}",
			self.threads,
			self.keys,
			self.updates,
			self.rate,
			u8::from(self.disturbed),
			self.element_bytes,
			self.fill_ns,
			self.wrong
		)
	}

	fn from_line(line: &str) -> Option<Self> {
		let v: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
		match v[..] {
			[threads, keys, updates, rate, disturbed, element_bytes, fill_ns, wrong] => Some(Sample {
				threads: threads as u64,
				keys: keys as u64,
				updates,
				rate,
				disturbed: disturbed > 0.0,
				element_bytes,
				fill_ns,
				wrong: wrong as u64,
			}),
			_ => None,
		}
	}
}

struct Row {
	name: &'static str,
	first: Sample,
	rates: Vec<f64>,
	disturbed: usize,
}

fn add(rows: &mut Vec<Row>, name: &'static str, s: Sample) {
	let same = |r: &Row| {
		r.name == name && (r.first.threads, r.first.keys) == (s.threads, s.keys) && r.first.updates == s.updates
	};
	let at = rows.iter().position(same).unwrap_or_else(|| {
		rows.push(Row { name, first: s, rates: vec![], disturbed: 0 });
		rows.len() - 1
	});
	rows[at].rates.push(s.rate);
	rows[at].disturbed += usize::from(s.disturbed);
}

fn measure<T: Table>(o: &Options, round: u64) {
	for &nr in &o.keys {
		let keys = work::keys(nr);
		let fill: Vec<u64> = keys.iter().map(|key| key | work::INSERT).collect();
		let before = allocated();
		let table = T::new();
		let mut tally = Tally::default();
		let begin = Instant::now();
		run(&table, &fill, &mut tally);
		let fill_ns = begin.elapsed().as_nanos() as f64 / nr as f64;
		let element_bytes = (allocated() - before) / nr as f64;
		for &threads in &o.threads {
			for &updates in &o.updates {
				let (rate, disturbed, wrong) = window(&table, &keys, o, threads, updates, round);
				let wrong = wrong + std::mem::take(&mut tally.wrong);
				println!(
					"{}",
					Sample { threads, keys: nr, updates, rate, disturbed, element_bytes, fill_ns, wrong }.to_line()
				);
			}
		}
	}
}

type Measure = fn(&Options, u64);
const TYPES: [(&str, Measure); 6] = [
	("rust_quiesce_hashmap", measure::<tables::Quiesce>),
	("rust_dashmap", measure::<tables::Dash>),
	("rust_scc_hashindex", measure::<tables::SccIndex>),
	("rust_scc_hashmap", measure::<tables::SccMap>),
	("rust_papaya", measure::<tables::Papaya>),
	("rust_std_rwlock", measure::<tables::Std>),
];

fn print_row(r: &mut Row, distribution: &str) -> String {
	r.rates.sort_by(f64::total_cmp);
	let n = r.rates.len();
	let p50 = (r.rates[(n - 1) / 2] + r.rates[n / 2]) / 2.0;
	let what = format!(
		"\"subcommand\": \"hashscale\", \"type\": \"{}\", \"scenario\": \"hash\", \"threads\": {}, \
         \"fence\": null, \"unit\": \"operations/s\"",
		r.name, r.first.threads
	);
	let figures = format!(
		"\"n\": {}, \"disturbed\": {}, \"mean\": {:.6e}, \"min\": {:.6e}, \"p50\": {:.6e}, \"max\": {:.6e}",
		n,
		r.disturbed,
		r.rates.iter().sum::<f64>() / n as f64,
		r.rates[0],
		p50,
		r.rates[n - 1]
	);
	let more = format!(
		"\"keys\": \"uniform:{}\", \"nr_keys\": {}, \"distribution\": \"{}\", \"updates\": {:?}, \
         \"element_bytes\": {:.1}, \"fill_ns\": {:.1}",
		r.first.keys, r.first.keys, distribution, r.first.updates, r.first.element_bytes, r.first.fill_ns
	);
	format!("  {{{what}, {figures}, {more}}}")
}

fn wrong_usage(text: &str) -> ! {
	let valid = "--type= --threads= --keys=uniform:N --updates= --distribution=uniform|zipf|hot --seconds= --runs=";
	eprintln!("hashscale: {text}; valid: {valid}");
	std::process::exit(2);
}

fn list<T: std::str::FromStr>(arg: &str, text: &str) -> Vec<T> {
	text.split(',').map(|item| item.parse().unwrap_or_else(|_| wrong_usage(arg))).collect()
}

fn options() -> Options {
	let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
	let mut o = Options {
		types: TYPES.iter().map(|(name, _)| name.to_string()).collect(),
		threads: if cpus > 2 { vec![1, 2, cpus] } else { vec![1, 2] },
		keys: vec![1000, 1_000_000],
		updates: vec![0.0],
		distribution: (Distribution::Uniform, "uniform"),
		seconds: 0.2,
		runs: 6,
		round: None,
	};
	for arg in std::env::args().skip(1) {
		match arg.split_once('=') {
			Some(("--type", text)) => o.types = list(&arg, text),
			Some(("--threads", text)) => o.threads = list(&arg, text),
			Some(("--keys", text)) => o.keys = list(&arg, &text.replace("uniform:", "")),
			Some(("--updates", text)) => o.updates = list(&arg, text),
			Some(("--distribution", "uniform")) => o.distribution = (Distribution::Uniform, "uniform"),
			Some(("--distribution", "zipf")) => o.distribution = (Distribution::Zipf, "zipf"),
			Some(("--distribution", "hot")) => o.distribution = (Distribution::Hot, "hot"),
			Some(("--seconds", text)) => o.seconds = list(&arg, text)[0],
			Some(("--runs", text)) => o.runs = list(&arg, text)[0],
			Some(("--round", text)) => o.round = Some(list(&arg, text)[0]),
			_ => wrong_usage(&format!("unknown option '{arg}'")),
		}
	}
	if let Some(name) = o.types.iter().find(|name| TYPES.iter().all(|(known, _)| known != name)) {
		wrong_usage(&format!("unknown type '{name}'"));
	}
	if o.runs < 1 || o.seconds <= 0.0 || o.keys.iter().any(|n| *n < 64) || o.threads.iter().any(|n| *n < 1 || *n > 512)
	{
		wrong_usage("a number is out of range");
	}
	o
}

/// One type and round in a process of its own, so that no memory is left over from another; how many operations went wrong.
fn child(name: &'static str, round: u64, rows: &mut Vec<Row>) -> Result<u64, String> {
	let program = std::env::current_exe().map_err(|e| e.to_string())?;
	let child = std::process::Command::new(program)
		.args(std::env::args().skip(1).filter(|arg| !arg.starts_with("--type=")))
		.args([format!("--type={name}"), format!("--round={round}")])
		.stderr(std::process::Stdio::inherit())
		.output()
		.map_err(|e| e.to_string())?;
	let samples: Vec<Sample> = String::from_utf8_lossy(&child.stdout).lines().filter_map(Sample::from_line).collect();
	samples.iter().for_each(|s| add(rows, name, *s));
	if child.status.success() {
		Ok(samples.iter().map(|s| s.wrong).sum())
	} else {
		Err(child.status.to_string())
	}
}

fn main() {
	let o = options();
	let chosen = TYPES.iter().filter(|(name, _)| o.types.iter().any(|asked| asked == name));
	if let Some(round) = o.round {
		chosen.for_each(|(_, measure)| measure(&o, round));
		return;
	}
	let (mut rows, mut notes) = (Vec::new(), Vec::new());
	for round in 0..o.runs {
		for (name, _) in chosen.clone() {
			eprintln!("round {} of {}: {name}", round + 1, o.runs);
			match child(name, round, &mut rows) {
				Ok(0) => {}
				Ok(wrong) => notes.push(format!("\"{name}: BROKEN: {wrong} operations found what they should not\"")),
				Err(why) => notes.push(format!("\"{name}: {why}\"")),
			}
		}
	}
	let text: Vec<String> = rows.iter_mut().map(|r| print_row(r, o.distribution.1)).collect();
	println!("{{\n \"schema\": 1,\n \"rows\": [\n{}\n ],\n \"notes\": [{}]\n}}", text.join(",\n"), notes.join(", "));
	std::process::exit(i32::from(!notes.is_empty()));
}
