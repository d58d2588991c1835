//! The native half of the Python package `tamarack`: classes with plyvel's interface over the engine, and what Tamarack adds.
//! The other half, in `python/tamarack`, names what is public, defines the exceptions and gives types.
//!
//! Three rules hold everywhere:
//!
//! - **Nobody waits for the engine while attached to the interpreter** (with the GIL). An engine thread may be in a
//!   comparator or listener written in Python and wait for just that. So each call of the engine, each lock that is
//!   held during one, and each drop of what belongs to it happens detached: `shared`, `walk` and `kept` see to it.
//! - **A child process leaves its parent's database alone.** What was opened before a fork refuses calls after it, and is
//!   not even dropped: `fork` and `kept`.
//! - **No unsafe code.** Bytes objects are borrowed, for they never change; other buffers are copied while attached.
//!
//! Layers, downward: the classes `database`, `prefixed`, `snapshot`, `batch`, `iterator`, `raw_iterator`; `view`, which is what the
//! first three have in common; `walk`; `shared`; and below them `options`, `order`, `listener`, `patience`, `report`, `bytes`,
//! `errors`, `kept`, `fork`.

mod batch;
mod bytes;
mod database;
mod errors;
mod fork;
mod iterator;
mod kept;
mod listener;
mod options;
mod order;
mod patience;
mod prefixed;
mod raw_iterator;
mod report;
mod shared;
mod snapshot;
mod view;
mod walk;

use pyo3::prelude::*;

#[pymodule]
fn _tamarack(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<database::Database>()?;
    module.add_class::<prefixed::PrefixedDatabase>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<batch::WriteBatch>()?;
    module.add_class::<iterator::Iterator>()?;
    module.add_class::<raw_iterator::RawIterator>()?;
    module.add_function(wrap_pyfunction!(database::destroy_db, module)?)?;
    module.add_function(wrap_pyfunction!(database::repair_db, module)?)?;
    fork::watch(module)?;
    shared::close_at_exit(module)
}
