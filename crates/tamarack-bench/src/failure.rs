//! Why a workload could not be run to its end.

/// `Result` with this crate's [`Failure`].
pub type Result<T, E> = std::result::Result<T, Failure<E>>;

/// The reason.
#[derive(Debug)]
pub enum Failure<E> {
    /// What was asked for cannot be.
    Usage(String),
    /// The store has given back something else than was written to it.
    Mismatch(String),
    /// The store has failed.
    Store(E),
    /// A call of the operating system has failed beside the store.
    Io(std::io::Error),
}
