//! The locks of shuttle or of loom, which have the interface of `std`, with that of `parking_lot`.

use std::ops::{Deref, DerefMut};

#[cfg(loom)]
use loom::sync as explored;
#[cfg(shuttle)]
use shuttle::sync as explored;

/// A mutex with the `parking_lot` interface.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(explored::Mutex<T>);

/// The guard of [`Mutex`]; empty only while a [`Condvar`] holds the lock's place.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized>(Option<explored::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// A new unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(explored::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("an exploration stops at the first panic")))
    }

    /// The lock, if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect("only a waiting condvar empties the guard")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("only a waiting condvar empties the guard")
    }
}

/// A lock that readers share, with the `parking_lot` interface.
#[derive(Debug, Default)]
pub struct RwLock<T>(explored::RwLock<T>);

impl<T> RwLock<T> {
    /// A new unlocked lock.
    pub fn new(value: T) -> Self {
        Self(explored::RwLock::new(value))
    }

    /// Waits until nobody writes.
    pub fn read(&self) -> explored::RwLockReadGuard<'_, T> {
        self.0.read().expect("an exploration stops at the first panic")
    }

    /// Waits until nobody else reads or writes.
    pub fn write(&self) -> explored::RwLockWriteGuard<'_, T> {
        self.0.write().expect("an exploration stops at the first panic")
    }
}

/// A condition variable with the `parking_lot` interface.
#[derive(Debug, Default)]
pub struct Condvar(explored::Condvar);

impl Condvar {
    /// A new condition variable.
    pub fn new() -> Self {
        Self(explored::Condvar::new())
    }
    /// Releases the lock, waits for a notification, takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.0.take().expect("only a waiting condvar empties the guard");
        guard.0 = Some(self.0.wait(inner).expect("an exploration stops at the first panic"));
    }
    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
    /// Wakes every waiter.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
