// SPDX-License-Identifier: MIT
//! The end of what is dropped where no wait is allowed: a thread that lives as long as there is such work.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

struct Work {
	queue: VecDeque<Box<dyn FnOnce() + Send>>,
	served: bool,
}

static WORK: Mutex<Work> = Mutex::new(Work { queue: VecDeque::new(), served: false });

fn work() -> MutexGuard<'static, Work> {
	WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Call a function in another thread. If none can be created the function waits for the next call that can create one.
pub(super) fn elsewhere(function: impl FnOnce() + Send + 'static) {
	let mut work = work();
	work.queue.push_back(Box::new(function));
	if !work.served {
		work.served = thread::Builder::new().name("quiesce-end".into()).spawn(serve).is_ok();
	}
}

fn serve() {
	while let Some(function) = next() {
		function();
	}
}

fn next() -> Option<Box<dyn FnOnce() + Send>> {
	let mut work = work();
	let function = work.queue.pop_front();
	work.served = function.is_some();
	function
}
