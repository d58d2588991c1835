//! How space comes back while nobody calls: the size of the directory is watched until it is below the bound and rests.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::resources;

/// How often the directory is looked at.
const INTERVAL: Duration = Duration::from_millis(50);
/// It rests when its size was the same for so long.
const REST: Duration = Duration::from_secs(3);
/// It is watched no longer than that.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a store keeps its space to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes on disk for each live byte.
    pub ratio: f64,
    /// Bytes that may come on top of that.
    pub slack: u64,
}

impl Limits {
    fn bound(&self, live_bytes: u64) -> u64 {
        (live_bytes as f64 * self.ratio) as u64 + self.slack
    }
}

/// What was seen. Times are since the last operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reclaim {
    /// What the directory may take up on disk.
    pub bound_bytes: u64,
    /// Until it was below the bound; `None` if it never was.
    pub below_bound_seconds: Option<f64>,
    /// Until its size changed for the last time.
    pub rest_seconds: f64,
    /// What it took up then.
    pub rest_disk_bytes: u64,
    /// That for each live byte.
    pub rest_space_amplification: f64,
}

/// Watches `directory`, in which `live_bytes` are alive.
pub fn watch(directory: &Path, live_bytes: u64, limits: &Limits) -> Reclaim {
    let begin = Instant::now();
    let looks = std::iter::from_fn(|| {
        let look = (begin.elapsed(), resources::disk_bytes(directory));
        std::thread::sleep(INTERVAL);
        Some(look)
    });
    judge(looks, live_bytes, limits.bound(live_bytes))
}

/// Takes looks (when, how many bytes) until there is no need for more.
fn judge(looks: impl Iterator<Item = (Duration, u64)>, live_bytes: u64, bound_bytes: u64) -> Reclaim {
    let mut below = None;
    let mut last = (Duration::ZERO, 0);
    for (now, bytes) in looks {
        if bytes <= bound_bytes {
            below.get_or_insert(now);
        }
        if bytes != last.1 {
            last = (now, bytes);
        }
        if now >= PATIENCE || below.is_some() && now - last.0 >= REST {
            break;
        }
    }
    Reclaim {
        bound_bytes,
        below_bound_seconds: below.map(|below| below.as_secs_f64()),
        rest_seconds: last.0.as_secs_f64(),
        rest_disk_bytes: last.1,
        rest_space_amplification: last.1 as f64 / live_bytes.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One look each second.
    fn judge_seconds(sizes: impl Iterator<Item = u64>) -> Reclaim {
        judge((0..).map(Duration::from_secs).zip(sizes), 100, 150)
    }

    #[test]
    fn it_is_watched_until_it_rests_below_the_bound() {
        let mut left = [300, 300, 300, 300, 300, 150, 140, 130, 130, 130, 130, 7].into_iter();
        let reclaim = judge_seconds(left.by_ref());
        let expected = Reclaim {
            bound_bytes: 150,
            below_bound_seconds: Some(5.0),
            rest_seconds: 7.0,
            rest_disk_bytes: 130,
            rest_space_amplification: 1.3,
        };
        assert_eq!(reclaim, expected);
        assert_eq!(left.next(), Some(7), "nobody looks any more");
    }

    #[test]
    fn what_never_comes_down_is_left_at_last() {
        let reclaim = judge_seconds(std::iter::repeat(151));
        assert_eq!((reclaim.below_bound_seconds, reclaim.rest_disk_bytes), (None, 151));
        let busy = judge_seconds((1..).map(|second| second % 2));
        assert_eq!((busy.below_bound_seconds, busy.rest_seconds), (Some(0.0), 120.0));
    }
}
