//! `Iterator`: a walk over a range, as plyvel's.

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::given;
use crate::errors;
use crate::walk::{Owned, Walk};

/// What an iterator gives, and which way it goes.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// From the last entry to the first.
    pub reverse: bool,
    /// Keys.
    pub key: bool,
    /// Values.
    pub value: bool,
}

/// A walk over a range of a database, as it was when the walk began, whatever is written meanwhile.
///
/// It gives ``(key, value)`` tuples, or keys or values alone if it was asked for them. It may be turned at any entry: ``prev()``
/// after ``next()`` gives the same entry again. What it needs stays on disk until it is closed, exhausted or not, or its database
/// is. Several threads may use one iterator.
#[pyclass(frozen, weakref, module = "tamarack")]
pub struct Iterator {
    owned: Owned,
    shape: Shape,
    /// What is cut off each key.
    prefix: Vec<u8>,
}

/// An entry without what was not asked for.
type Entry<'py> = (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

impl Iterator {
    /// An iterator that stands where its direction begins.
    pub fn new(py: Python<'_>, owned: Owned, shape: Shape, prefix: Vec<u8>) -> PyResult<Self> {
        if shape.reverse {
            owned.with(
                py,
                |_| Ok(()),
                |(), walk| {
                    walk.go_to_end();
                    Ok(())
                },
            )?;
        }
        Ok(Self { owned, shape, prefix })
    }

    /// The next entry in the order of keys, or backwards.
    fn step<'py>(&self, py: Python<'py>, forward: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let want_value = self.shape.value;
        let work = |walk: &mut Walk| {
            let mut found = if forward { walk.forward()? } else { walk.back()? };
            // In an order of one's own there may be other keys among those that begin with the prefix.
            while found && !walk.iter.key().starts_with(&self.prefix) {
                found = if forward { walk.forward()? } else { walk.back()? };
            }
            if found && want_value {
                // Read now, while nobody waits for this thread.
                walk.iter.value()?;
            }
            Ok(found)
        };
        let show = |found: bool, walk: &mut Walk| {
            let signal_due = walk.is_signal_due();
            let entry = if found { Some(self.show(py, walk)?) } else { None };
            Ok((entry, signal_due))
        };
        let (entry, signal_due) = self.owned.with(py, work, show)?;
        // A loop in C, such as that of `list`, does not look for signals by itself.
        if signal_due {
            py.check_signals()?;
        }
        entry.map(|entry| pack(py, entry)).transpose()
    }

    fn show<'py>(&self, py: Python<'py>, walk: &mut Walk) -> PyResult<Entry<'py>> {
        let key = self.shape.key.then(|| PyBytes::new(py, &walk.iter.key()[self.prefix.len()..]));
        let value = match self.shape.value {
            true => Some(walk.iter.value().map_err(|error| errors::raise(py, &error))?),
            false => None,
        };
        Ok((key, value.map(|value| PyBytes::new(py, value))))
    }
}

/// What Python gets of an entry. Outside the walk's lock: a new tuple may begin a garbage collection, and that run anything.
fn pack<'py>(py: Python<'py>, entry: Entry<'py>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match entry {
        (Some(key), Some(value)) => PyTuple::new(py, [key, value])?.into_any(),
        (Some(one), None) | (None, Some(one)) => one.into_any(),
        (None, None) => py.None().into_bound(py),
    })
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.step(py, !self.shape.reverse)
    }

    /// Goes on, as ``next(it)`` does.
    ///
    /// Raises ``StopIteration`` at the end, ``CorruptionError`` where a value is not what was written: the next call then goes on
    /// with the entry behind it.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, !self.shape.reverse)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Goes back by one entry, and returns it.
    ///
    /// Raises ``StopIteration`` at the beginning.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, self.shape.reverse)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Goes before the first entry at or behind ``target``, a key, or to the end of the range that is nearer.
    ///
    /// ``next()`` then gives that entry, or in a reverse iterator the one before it.
    fn seek(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let target = [&self.prefix, &*given(target, "a key")?].concat();
        self.owned.with(py, |walk| walk.seek(&target), |(), _| Ok(()))
    }

    /// Goes before the first entry of the range, in the order of keys.
    fn seek_to_start(&self, py: Python<'_>) -> PyResult<()> {
        self.owned.with(
            py,
            |_| Ok(()),
            |(), walk| {
                walk.go_to_start();
                Ok(())
            },
        )
    }

    /// Goes behind the last entry of the range, in the order of keys.
    fn seek_to_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.owned.with(
            py,
            |_| Ok(()),
            |(), walk| {
                walk.go_to_end();
                Ok(())
            },
        )
    }

    /// Closes it, and lets go of what it needed. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.owned.close(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.owned.close(py)?;
        Ok(false)
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        errors::refuse_pickling("an Iterator")
    }
}
