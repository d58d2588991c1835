//! When a store's background work has ended, for stores that have no way to wait for it.

use std::thread::sleep;
use std::time::Duration;

use tamarack_bench::Resources;

/// How long nothing must have happened.
const QUIET: Duration = Duration::from_millis(500);
/// The share of that in which a processor may be busy: what is left of timers and polls.
const BUSY_SHARE: f64 = 0.02;

/// Waits until `is_busy` says no and the process does next to nothing for half a second, but for those who look; returns how long that is. Nothing else may be running in it.
pub fn wait(is_busy: impl Fn() -> bool) -> Duration {
    loop {
        let before = Resources::now();
        sleep(QUIET);
        let spent = before.spent();
        if !is_busy() && spent.cpu_seconds < QUIET.as_secs_f64() * BUSY_SHARE {
            return QUIET;
        }
    }
}
