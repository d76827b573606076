// SPDX-License-Identifier: MIT
//! Locks and counts whose readers write only memory of their CPU, SRCU, and RCU's switch between fast and slow paths.

mod ending;
mod lazy;
mod percpu_ref;
mod rcu_sync;
mod rwlock;
mod srcu;

pub use percpu_ref::{PercpuRef, Reference};
pub use rcu_sync::{RcuSync, SlowReaders};
pub use rwlock::{PercpuReadGuard, PercpuRwLock, PercpuWriteGuard, RawPercpuRwLock};
pub use srcu::{Srcu, SrcuCell, SrcuCookie, SrcuGuard, SrcuRef};
