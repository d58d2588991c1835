//! Exceptions, by the engine's kinds of errors. Their classes are defined in `tamarack._errors`, in Python.

use std::any::Any;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamarack::{Error, ErrorKind};

/// The exception for `error`.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::Io => "IOError",
        ErrorKind::Corruption => "CorruptionError",
        ErrorKind::Locked => "LockedError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Closed => "ClosedError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::NoSpace => "NoSpaceError",
        _ => "Error",
    };
    let exception = build(py, class, error.message());
    let described = describe(py, &exception, error);
    described.err().unwrap_or(exception)
}

/// Tells what is known besides the message.
fn describe(py: Python<'_>, exception: &PyErr, error: &Error) -> PyResult<()> {
    let value = exception.value(py);
    if let Some(place) = error.as_corruption() {
        value.setattr("file", place.file.as_os_str())?;
        value.setattr("offset", place.offset)?;
        value.setattr("expected", &place.expected)?;
        value.setattr("found", &place.found)?;
    }
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    match source.and_then(std::io::Error::raw_os_error) {
        Some(number) => value.setattr("errno", number),
        None => Ok(()),
    }
}

/// What was used is closed.
pub fn closed(py: Python<'_>, what: &str) -> PyErr {
    build(py, "ClosedError", &format!("{what} is closed"))
}

/// What was used belongs to the process that this one was forked from.
pub fn forked(py: Python<'_>) -> PyErr {
    let message = "the database was opened before this process was forked: open it in the process that uses it (with \
                   multiprocessing: in the child, or by the start method \"spawn\")";
    build(py, "ForkError", message)
}

/// An iterator stands nowhere.
pub fn iterator_invalid(py: Python<'_>) -> PyErr {
    build(py, "IteratorInvalidError", "the iterator stands nowhere: check valid() first")
}

/// The engine panicked with `payload`, which is a fault of its own.
pub fn internal(py: Python<'_>, payload: &(dyn Any + Send)) -> PyErr {
    let said = payload.downcast_ref::<&str>().map(|said| (*said).to_owned());
    let said = said.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let message =
        format!("internal failure: {said}: close the database and open it again; please report this");
    build(py, "Error", &message)
}

/// The comparator has failed, with `cause`.
pub fn comparator(py: Python<'_>, cause: PyErr) -> PyErr {
    let message = "the comparator raised an exception, so keys cannot be found any more: close the database, and open it with a \
                   comparator that orders all keys";
    let exception = build(py, "ComparatorError", message);
    exception.set_cause(py, Some(cause));
    exception
}

/// What `pickle` and `copy` get.
///
/// # Errors
/// Always, with `TypeError`.
pub fn refuse_pickling(class: &str) -> PyResult<()> {
    Err(PyTypeError::new_err(format!(
        "cannot pickle or copy {class}: it belongs to an open database, which only one process may have. Pass the \
         database's path, and open it there"
    )))
}

/// An exception of `class`, with `message` and what `tamarack._errors` gives it.
fn build(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py.import("tamarack._errors").and_then(|module| module.getattr(class)?.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Refuses keyword arguments that are not known, in Python's words.
pub fn unknown_keyword(function: &str, name: &str) -> PyErr {
    PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'"))
}

/// Keyword arguments with their names as text.
pub fn keywords<'py>(given: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let pairs = given.into_iter().flat_map(|given| given.iter());
    pairs.map(|(name, value)| Ok((name.extract()?, value))).collect()
}
