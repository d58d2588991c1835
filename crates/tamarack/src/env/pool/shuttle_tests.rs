//! The pool under many thread schedules. Shuttle reports a schedule in which nobody can go on as a deadlock, so a
//! lost wake-up fails here. Run with `RUSTFLAGS="--cfg shuttle" cargo test -p tamarack --lib shuttle`.

use shuttle::check_random;

use super::*;
use crate::base::sync::{AtomicU64, Ordering};
use crate::env::posix::posix_env;

const SCHEDULES: usize = 10_000;

fn adding(total: &Arc<AtomicU64>, amount: u64) -> Job {
    let total = Arc::clone(total);
    Box::new(move || {
        total.fetch_add(amount, Ordering::SeqCst);
    })
}

fn pool() -> Arc<WorkerPool> {
    WorkerPool::new(&posix_env(), "test", 2).expect("shuttle starts threads")
}

#[test]
fn groups_within_jobs_end() {
    check_random(
        || {
            let pool = pool();
            let total = Arc::new(AtomicU64::new(0));
            let (inner_pool, inner_total) = (Arc::clone(&pool), Arc::clone(&total));
            let nested: Job = Box::new(move || {
                inner_pool.run_all((0..3).map(|_| adding(&inner_total, 1)).collect());
            });
            pool.run_all(vec![nested, adding(&total, 10), adding(&total, 10)]);
            assert_eq!(total.load(Ordering::SeqCst), 23);
            pool.shutdown();
        },
        SCHEDULES,
    );
}

#[test]
fn a_low_job_gets_its_turn_while_high_ones_wait_for_it() {
    check_random(
        || {
            let pool = pool();
            let state = Arc::new((Mutex::new(0), Condvar::new()));
            assert!(pool.submit(Priority::Low, Box::new(|| ())));
            let waits_for_low = Arc::clone(&state);
            let high: Job = Box::new(move || {
                let (done, changed) = &*waits_for_low;
                let mut done = done.lock();
                while *done == 0 {
                    changed.wait(&mut done);
                }
                *done = 2;
                changed.notify_all();
            });
            let tells_high = Arc::clone(&state);
            let low: Job = Box::new(move || {
                *tells_high.0.lock() = 1;
                tells_high.1.notify_all();
            });
            assert!(pool.submit(Priority::High, high));
            assert!(pool.submit(Priority::Low, low));
            let (done, changed) = &*state;
            let mut done = done.lock();
            while *done < 2 {
                changed.wait(&mut done);
            }
        },
        SCHEDULES,
    );
}

#[test]
fn shutdown_from_outside_and_inside_ends_every_thread() {
    check_random(
        || {
            let pool = pool();
            let total = Arc::new(AtomicU64::new(0));
            let user = Arc::clone(&pool);
            pool.submit(Priority::High, Box::new(move || user.shutdown()));
            pool.submit(Priority::Low, adding(&total, 1));
            pool.run_all(vec![adding(&total, 10), adding(&total, 10)]);
            pool.shutdown();
            assert!(!pool.submit(Priority::Low, adding(&total, 1)));
            let total = total.load(Ordering::SeqCst);
            assert!(
                total == 20 || total == 21,
                "groups are done whole, submitted jobs once or never: {total}"
            );
        },
        SCHEDULES,
    );
}

#[test]
fn a_group_is_finished_or_given_up_in_every_schedule() {
    check_random(
        || {
            let pool = pool();
            let total = Arc::new(AtomicU64::new(0));
            let kept = pool.start(vec![adding(&total, 10), adding(&total, 10)]);
            let dropped = pool.start(vec![adding(&total, 1), adding(&total, 1)]);
            drop(dropped);
            let seen = total.load(Ordering::SeqCst) % 10;
            kept.finish();
            assert_eq!(total.load(Ordering::SeqCst), 20 + seen, "a job ran after its group was dropped");
            pool.shutdown();
        },
        SCHEDULES,
    );
}
