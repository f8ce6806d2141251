// A known chain of calls through the standard library's sort and a closure;
// it ends in stop().
use std::sync::atomic::{AtomicI64, Ordering};

extern "C" {
    fn getpid() -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn pause() -> i32;
}

static NEVER: AtomicI64 = AtomicI64::new(0);

fn never() -> i64 {
    NEVER.load(Ordering::Relaxed)
}

#[inline(never)]
fn stop() {
    unsafe {
        kill(getpid(), 19);
        while never() == 0 {
            pause();
        }
    }
}

#[inline(never)]
fn leaf(a: i64) -> i64 {
    stop();
    a + never()
}

#[inline(never)]
fn sorted(n: i64) -> i64 {
    let mut v: Vec<i64> = (0..1000).map(|i| (i * 7919 + n) % 1009).collect();
    v.sort_by_key(|x| x + leaf(*x) + never());
    v[0] + never()
}

fn main() {
    std::process::exit((sorted(3) + never()) as i32);
}
