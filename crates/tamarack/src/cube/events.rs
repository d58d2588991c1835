//! Tells the user's listener of events.
//!
//! Owns the rule that a panic in the user's code is the user's: it is caught, remembered as a warning, and the listener
//! is left alone from then on. Never holds a lock during a call, and must not be called under one. Called by whoever
//! does the work that is told of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::health::Health;
use crate::base::listener::{EventListener, GcEvent};
use crate::base::sync::{Arc, AtomicBool, Ordering};
use crate::env::panic_message;

/// The listener of one cube, if it has one.
#[derive(Debug)]
pub struct Events {
    listener: Option<Arc<dyn EventListener>>,
    /// Whether it has panicked.
    panicked: AtomicBool,
    health: Arc<Health>,
}

impl Events {
    /// Events for `listener`; what goes wrong in it is told to `health`.
    pub fn new(listener: Option<Arc<dyn EventListener>>, health: Arc<Health>) -> Self {
        Self { listener, panicked: AtomicBool::new(false), health }
    }

    /// Tells of garbage collection; `event` is made only if somebody listens.
    pub fn gc(&self, event: impl FnOnce() -> GcEvent) {
        self.tell(|listener| listener.on_gc(&event()));
    }

    fn tell(&self, call: impl FnOnce(&dyn EventListener)) {
        let Some(listener) = self.listener.as_ref().filter(|_| !self.panicked.load(Ordering::Relaxed)) else {
            return;
        };
        let Err(payload) = catch_unwind(AssertUnwindSafe(|| call(&**listener))) else { return };
        // Calls may be under way on several threads; one warning is enough.
        if !self.panicked.swap(true, Ordering::Relaxed) {
            let said = panic_message(&*payload);
            self.health.warn(format!("the event listener panicked and is not called any more: {said}"));
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::base::sync::AtomicU64;

    #[derive(Debug, Default)]
    struct Fragile(AtomicU64);

    impl EventListener for Fragile {
        fn on_gc(&self, event: &GcEvent) {
            self.0.fetch_add(1, Ordering::Relaxed);
            assert!(!matches!(event, GcEvent::Failed { job: 2, .. }), "two is too much");
        }
    }

    #[test]
    fn a_panic_is_remembered_once_and_ends_the_calls() {
        let (fragile, health) = (Arc::new(Fragile::default()), Arc::new(Health::default()));
        let events = Events::new(Some(Arc::<Fragile>::clone(&fragile)), Arc::clone(&health));
        for job in 1..5 {
            events.gc(|| GcEvent::Failed { job, error: Error::closed() });
        }
        assert_eq!(fragile.0.load(Ordering::Relaxed), 2);
        let warnings = health.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("two is too much"), "{warnings:?}");
        assert!(!health.is_poisoned());
    }

    #[test]
    fn without_a_listener_no_event_is_made() {
        Events::new(None, Arc::default()).gc(|| unreachable!("nobody listens"));
    }
}
