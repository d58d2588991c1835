//! Bytes that Python passes in, and buffers that it wants to have filled.
//!
//! A `bytes` object never changes, so it is borrowed. Any other buffer may be changed by another thread while the engine
//! reads it, so it is copied while attached.

use std::borrow::Cow;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice, PyString};

/// The bytes of `object`: `bytes`, or anything contiguous with the buffer protocol.
///
/// # Errors
/// `TypeError` for anything else, text above all; `BufferError` for what is not contiguous.
pub fn given<'a>(object: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let (_, buffer) = view(object, what)?;
    Ok(Cow::Owned(buffer.to_vec(object.py())?))
}

/// `bytes` alone, where plyvel takes nothing else and a bound is compared with `None`.
pub fn bound(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Vec<u8>>> {
    if object.is_none() { Ok(None) } else { given(object, what).map(|bytes| Some(bytes.into_owned())) }
}

/// A writable buffer that a value is to be put into.
pub struct Target<'py> {
    bytes: PyBuffer<u8>,
    object: Bound<'py, PyAny>,
}

impl<'py> Target<'py> {
    /// The buffer of `object`.
    ///
    /// # Errors
    /// `TypeError` if it has none, or one that cannot be written to.
    pub fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (object, bytes) = view(object, "the buffer")?;
        if bytes.readonly() {
            return Err(PyTypeError::new_err(
                "the buffer cannot be written to: pass a bytearray, or another writable buffer",
            ));
        }
        Ok(Self { bytes, object })
    }

    /// Writes `value` to its beginning.
    ///
    /// # Errors
    /// `ValueError` if it has no room for all of it; it then stays as it was.
    pub fn fill(&self, value: &[u8]) -> PyResult<()> {
        let (py, room) = (self.object.py(), self.bytes.item_count());
        match value.len() {
            length if length == room => self.bytes.copy_from_slice(py, value),
            0 => Ok(()),
            length if length < room => {
                let part = self.object.get_item(PySlice::new(py, 0, length as isize, 1))?;
                PyBuffer::get(&part)?.copy_from_slice(py, value)
            }
            length => Err(PyValueError::new_err(format!(
                "the value has {length} bytes and the buffer only {room}: pass a larger one"
            ))),
        }
    }
}

/// A view of the buffer of `object`, as bytes, whatever its elements are.
fn view<'py>(object: &Bound<'py, PyAny>, what: &str) -> PyResult<(Bound<'py, PyAny>, PyBuffer<u8>)> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "{what} must be bytes, not str: encode it, as with text.encode()"
        )));
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{what} must be bytes or another buffer, not {kind}")));
    };
    let view = view.into_any();
    match PyBuffer::get(&view) {
        Ok(buffer) if buffer.dimensions() == 1 && buffer.is_c_contiguous() => Ok((view, buffer)),
        // Numbers, or several dimensions: the view is cast to bytes, which fails unless it is contiguous.
        _ => {
            let bytes = view.call_method1("cast", ("B",))?;
            let buffer = PyBuffer::get(&bytes)?;
            Ok((bytes, buffer))
        }
    }
}
