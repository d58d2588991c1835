//! The pool under test: order, limits, groups, panics, and both ways to end.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::base::sync::{AtomicBool, AtomicU64, Ordering};
use crate::env::panic_message;
use crate::env::posix::posix_env;

/// Longer than anything here takes on a busy machine: it ends hangs alone.
const PATIENCE: Duration = Duration::from_secs(900);
/// Long enough for something that must not happen to happen.
const MOMENT: Duration = Duration::from_millis(50);

fn pool(threads: usize) -> Arc<WorkerPool> {
    WorkerPool::new(&posix_env(), "test", threads).expect("threads can be started")
}

/// A job that reports that it runs, and goes on until the returned sender is used or dropped.
fn blocker(started: &mpsc::Sender<&'static str>, name: &'static str) -> (Job, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel::<()>();
    let started = started.clone();
    let job = move || {
        started.send(name).expect("the test listens");
        wait_for_release(&released);
    };
    (Box::new(job), release)
}

fn wait_for_release(released: &mpsc::Receiver<()>) {
    let outcome = released.recv_timeout(PATIENCE);
    assert_ne!(outcome, Err(mpsc::RecvTimeoutError::Timeout), "the test has forgotten this job");
}

fn report(started: &mpsc::Sender<&'static str>, name: &'static str) -> Job {
    let started = started.clone();
    Box::new(move || started.send(name).expect("the test listens"))
}

fn counting_jobs(count: usize, done: &Arc<AtomicU64>) -> Vec<Job> {
    let job = |_| -> Job {
        let done = Arc::clone(done);
        Box::new(move || {
            done.fetch_add(1, Ordering::Relaxed);
        })
    };
    (0..count).map(job).collect()
}

#[test]
fn high_goes_before_low_and_both_in_order() {
    let pool = pool(1);
    let (started, order) = mpsc::channel();
    let (job, release) = blocker(&started, "blocker");
    assert!(pool.submit(Priority::High, job));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("blocker"));
    for (priority, name) in [
        (Priority::Low, "low 1"),
        (Priority::High, "high 1"),
        (Priority::Low, "low 2"),
        (Priority::High, "high 2"),
    ] {
        assert!(pool.submit(priority, report(&started, name)));
    }
    drop(release);
    for expected in ["high 1", "high 2", "low 1", "low 2"] {
        assert_eq!(order.recv_timeout(PATIENCE), Ok(expected));
    }
}

#[test]
fn low_jobs_leave_a_thread_free() {
    let pool = pool(3);
    let (started, order) = mpsc::channel();
    let mut releases = Vec::new();
    for name in ["low", "low", "low"] {
        let (job, release) = blocker(&started, name);
        assert!(pool.submit(Priority::Low, job));
        releases.push(release);
    }
    assert_eq!(order.recv_timeout(PATIENCE), Ok("low"));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("low"));
    assert!(order.recv_timeout(MOMENT).is_err(), "the third low job must wait");
    assert!(pool.submit(Priority::High, report(&started, "high")));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("high"));
    releases.clear();
    assert_eq!(order.recv_timeout(PATIENCE), Ok("low"));
}

#[test]
fn a_freed_low_place_is_used_while_high_work_goes_on() {
    let pool = pool(2);
    let (started, order) = mpsc::channel();
    let (first_low, release_low) = blocker(&started, "first low");
    let (first_high, release_first_high) = blocker(&started, "first high");
    let (second_high, release_second_high) = blocker(&started, "second high");
    assert!(pool.submit(Priority::Low, first_low));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("first low"));
    assert!(pool.submit(Priority::High, first_high));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("first high"));
    assert!(pool.submit(Priority::High, second_high));
    assert!(pool.submit(Priority::Low, report(&started, "second low")));
    drop(release_first_high);
    assert_eq!(order.recv_timeout(PATIENCE), Ok("second high"));
    drop(release_low);
    assert_eq!(order.recv_timeout(PATIENCE), Ok("second low"));
    drop(release_second_high);
}

#[test]
fn run_all_does_every_job_and_shares_the_work() {
    let pool = pool(3);
    let done = Arc::new(AtomicU64::new(0));
    for count in [0, 1, 2, 100] {
        done.store(0, Ordering::Relaxed);
        pool.run_all(counting_jobs(count, &done));
        assert_eq!(done.load(Ordering::Relaxed), count as u64);
    }

    // Two jobs that wait for each other end only if two threads do them.
    let (to_left, left) = mpsc::channel();
    let (to_right, right) = mpsc::channel();
    let met = Arc::new(AtomicU64::new(0));
    let meet = |own: mpsc::Receiver<()>, other: mpsc::Sender<()>| -> Job {
        let met = Arc::clone(&met);
        Box::new(move || {
            other.send(()).expect("the other job runs or will run");
            if own.recv_timeout(PATIENCE).is_ok() {
                met.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    pool.run_all(vec![meet(left, to_right), meet(right, to_left)]);
    assert_eq!(met.load(Ordering::Relaxed), 2);
}

#[test]
fn a_started_group_is_done_by_others_or_by_whoever_finishes_it() {
    let pool = pool(2);
    let (started, order) = mpsc::channel();
    let group = pool.start(vec![report(&started, "by another")]);
    assert_eq!(order.recv_timeout(PATIENCE), Ok("by another"));
    group.finish();

    // One thread at most is in such work: this one keeps it there.
    let (job, release) = blocker(&started, "blocker");
    assert!(pool.submit(Priority::Low, job));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("blocker"));
    let done = Arc::new(AtomicU64::new(0));
    let group = pool.start(counting_jobs(3, &done));
    assert_eq!(done.load(Ordering::Relaxed), 0);
    group.finish();
    assert_eq!(done.load(Ordering::Relaxed), 3);
    drop(release);
}

#[test]
fn a_dropped_group_is_given_up_where_nobody_has_begun_and_waited_for_elsewhere() {
    let pool = pool(2);
    let (started, order) = mpsc::channel();
    let (job, release) = blocker(&started, "blocker");
    let done = Arc::new(AtomicU64::new(0));
    let mut jobs = counting_jobs(2, &done);
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    jobs.insert(
        0,
        Box::new(move || {
            job();
            let (_unused, nobody) = mpsc::channel::<()>();
            assert!(nobody.recv_timeout(MOMENT).is_err());
            flag.store(true, Ordering::Release);
            panic!("nobody waits for what it says");
        }),
    );
    let group = pool.start(jobs);
    assert_eq!(order.recv_timeout(PATIENCE), Ok("blocker"));
    drop(release);
    drop(group);
    assert!(ended.load(Ordering::Acquire), "what had begun was not waited for");
    assert_eq!((done.load(Ordering::Relaxed), pool.panics()), (0, 1));
}

#[test]
fn jobs_on_the_pool_may_run_groups() {
    for threads in [1, 2] {
        let pool = pool(threads);
        let done = Arc::new(AtomicU64::new(0));
        let (finished, results) = mpsc::channel();
        for priority in [Priority::Low, Priority::High, Priority::Low] {
            let (user, done, finished) = (Arc::clone(&pool), Arc::clone(&done), finished.clone());
            let job = move || {
                user.run_all(counting_jobs(20, &done));
                finished.send(()).expect("the test listens");
            };
            assert!(pool.submit(priority, Box::new(job)));
        }
        for _ in 0..3 {
            assert_eq!(results.recv_timeout(PATIENCE), Ok(()));
        }
        assert_eq!(done.load(Ordering::Relaxed), 60);
    }
}

#[test]
fn a_panic_ends_the_job_alone() {
    let pool = pool(1);
    assert!(pool.submit(Priority::Low, Box::new(|| panic!("no {}", "luck"))));
    let (started, order) = mpsc::channel();
    assert!(pool.submit(Priority::Low, report(&started, "after")));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("after"));
    assert_eq!(pool.panics(), 1);
}

#[test]
fn run_all_passes_a_panic_on_after_the_last_job() {
    let pool = pool(2);
    let done = Arc::new(AtomicU64::new(0));
    let mut jobs = counting_jobs(10, &done);
    jobs.insert(3, Box::new(|| panic!("group")));
    let outcome = catch_unwind(AssertUnwindSafe(|| pool.run_all(jobs)));
    assert_eq!(panic_message(&*outcome.expect_err("a job panicked")), "group");
    assert_eq!(done.load(Ordering::Relaxed), 10);
    assert_eq!(pool.panics(), 0, "the caller has it");
}

#[test]
fn shutdown_finishes_what_runs_and_drops_what_waits() {
    let pool = pool(1);
    let (started, order) = mpsc::channel();
    let finished = Arc::new(AtomicBool::new(false));
    let (release, released) = mpsc::channel::<()>();
    let (running, flag) = (started.clone(), Arc::clone(&finished));
    let job = move || {
        running.send("running").expect("the test listens");
        wait_for_release(&released);
        flag.store(true, Ordering::Release);
    };
    assert!(pool.submit(Priority::High, Box::new(job)));
    assert_eq!(order.recv_timeout(PATIENCE), Ok("running"));
    assert!(pool.submit(Priority::High, report(&started, "queued")));
    drop(started);
    let closer = {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || pool.shutdown())
    };
    while pool.submit(Priority::Low, Box::new(|| ())) {
        std::thread::yield_now();
    }
    drop(release);
    closer.join().expect("shutdown does not panic");
    assert!(finished.load(Ordering::Acquire), "shutdown waits for running jobs");
    assert_eq!(
        order.recv_timeout(PATIENCE),
        Err(mpsc::RecvTimeoutError::Disconnected),
        "the queue was dropped"
    );

    let done = Arc::new(AtomicU64::new(0));
    pool.run_all(counting_jobs(5, &done));
    assert_eq!(done.load(Ordering::Relaxed), 5, "groups need no threads");
    pool.shutdown();
}

#[test]
fn a_pool_may_be_dropped_by_its_own_thread() {
    let pool = pool(2);
    let (finished, results) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let last_user = Arc::clone(&pool);
    let job = move || {
        wait_for_release(&gone);
        drop(last_user);
        finished.send(()).expect("the test listens");
    };
    assert!(pool.submit(Priority::Low, Box::new(job)));
    drop(pool);
    drop(go);
    assert_eq!(results.recv_timeout(PATIENCE), Ok(()));
}
