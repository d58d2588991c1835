//! A pool of worker threads.
