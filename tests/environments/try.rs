// SPDX-License-Identifier: MIT
//! try.rs calls the library from threads of Rust's standard library.
use std::sync::Mutex;

extern "C" {
    fn quiesce_try() -> i32;
}

fn main() {
    let one = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| *one.lock().unwrap() |= unsafe { quiesce_try() });
        }
    });
    println!("result {}", one.into_inner().unwrap());
}
