// SPDX-License-Identifier: MIT
//! What is dropped in callbacks, where the library waits for no other callback, is freed even so, and not before its time.

use quiesce::hazard::{self, HazardCell};
use quiesce::rcu::{self, RcuCell};
use quiesce::sync::{RcuSync, Srcu, SrcuCell};
use quiesce_sys as sys;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_char;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Counts the domains of SRCU that are allocated.
struct Counting;

static DOMAINS: AtomicUsize = AtomicUsize::new(0);

fn is_domain(layout: Layout) -> usize {
	(layout == Layout::new::<sys::srcu_struct>()) as usize
}

// SAFETY: the allocator of the system.
unsafe impl GlobalAlloc for Counting {
	unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
		DOMAINS.fetch_add(is_domain(layout), SeqCst);
		// SAFETY: the caller's promise.
		unsafe { System.alloc(layout) }
	}

	unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
		DOMAINS.fetch_sub(is_domain(layout), SeqCst);
		// SAFETY: the caller's promise.
		unsafe { System.dealloc(memory, layout) }
	}
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Run a test alone, and return when it has freed its domains, except for `left`.
fn alone(left: usize, test: impl FnOnce()) {
	static ALONE: Mutex<()> = Mutex::new(());
	let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
	let before = DOMAINS.load(SeqCst);
	test();
	rcu::barrier();
	hazard::barrier();
	while DOMAINS.load(SeqCst) > before + left {
		thread::sleep(Duration::from_millis(1));
	}
	assert_eq!(DOMAINS.load(SeqCst), before + left);
}

#[test]
fn domains_end_in_callbacks() {
	alone(0, || {
		let cells = (RcuCell::new(SrcuCell::new(1)), HazardCell::new(SrcuCell::new(1)));
		for i in 0..100 {
			rcu::section(|section| use_cell(cells.0.get(section), i));
			cells.1.read(|cell| use_cell(cell, i));
			cells.0.replace(SrcuCell::new(1));
			cells.1.replace(SrcuCell::new(1));
		}
	});
}

/// In half of all cases something is deferred in the domain.
fn use_cell(cell: &SrcuCell<i32>, i: i32) {
	assert_eq!(*cell.read(), 1);
	if i % 2 == 0 {
		cell.replace(2);
	}
}

#[test]
fn a_domain_ends_in_its_own_callback() {
	struct Node(#[allow(dead_code)] Option<Arc<SrcuCell<Node>>>);
	alone(0, || {
		let cell = Arc::new(SrcuCell::new(Node(None)));
		cell.replace(Node(Some(cell.clone())));
		cell.replace(Node(None));
	});
}

#[test]
fn a_domain_that_is_dropped_in_a_callback_stays_until_its_own_have_run() {
	alone(0, || {
		let (proceed, wait) = mpsc::channel();
		let domain = Srcu::new();
		let before = DOMAINS.load(SeqCst);
		domain.defer(move || wait.recv().unwrap());
		rcu::defer(move || drop(domain));
		rcu::barrier();
		assert_eq!(DOMAINS.load(SeqCst), before + 1);
		proceed.send(()).unwrap();
	});
}

#[test]
fn switches_end_in_callbacks_and_sections() {
	alone(0, || {
		for _ in 0..100 {
			let (switch, other, idle) = (RcuSync::new(), RcuSync::new(), RcuSync::new());
			rcu::defer(move || {
				drop(switch.enter());
				drop(switch);
				assert!(rcu::section(|section| idle.is_idle(section)));
			});
			drop(other.enter());
			rcu::section(|_| drop(other));
		}
	});
}

/// A domain with a pending call is dropped in a callback of C, of which the crate does not know, and a hook lets the program go on.
#[test]
fn a_domain_that_cannot_end_is_leaked() {
	static REPORTS: AtomicUsize = AtomicUsize::new(0);
	static DOMAIN: Mutex<Option<Srcu>> = Mutex::new(None);
	unsafe extern "C" fn count(_kind: sys::quiesce_misuse, _text: *const c_char) {
		REPORTS.fetch_add(1, SeqCst);
	}
	unsafe extern "C" fn drop_domain(_head: *mut sys::rcu_head) {
		drop(DOMAIN.lock().unwrap().take());
	}
	alone(1, || {
		let (proceed, wait) = mpsc::channel();
		let (done, end) = mpsc::channel();
		let domain = Srcu::new();
		domain.defer(move || wait.recv().unwrap());
		domain.defer(move || done.send(()).unwrap());
		*DOMAIN.lock().unwrap() = Some(domain);
		// SAFETY: the functions fit; the memory of the head is leaked.
		unsafe {
			sys::quiesce_set_misuse_hook(Some(count));
			sys::quiesce_call_rcu(Box::leak(Box::new(std::mem::zeroed())), Some(drop_domain), 16);
		}
		rcu::barrier();
		// SAFETY: the default.
		unsafe { sys::quiesce_set_misuse_hook(None) };
		assert_eq!(REPORTS.load(SeqCst), 2, "the wait and the end");
		proceed.send(()).unwrap();
		end.recv().unwrap();
	});
}
