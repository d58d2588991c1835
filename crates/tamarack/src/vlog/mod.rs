//! The value log.
