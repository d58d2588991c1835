//! A callable that hears of garbage collection: it gets one dictionary for each event, on the thread that does the work.

use std::fmt;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamarack::{EventListener, GcEvent};

use crate::{order, report};

/// Passes events on to Python.
pub struct PythonListener {
    call: Py<PyAny>,
}

impl PythonListener {
    /// A listener that calls `call`.
    pub fn new(call: Py<PyAny>) -> Self {
        Self { call }
    }

    fn tell(&self, py: Python<'_>, event: &GcEvent) -> PyResult<()> {
        self.call.call1(py, (describe(py, event)?,)).map(drop)
    }
}

impl fmt::Debug for PythonListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonListener").finish_non_exhaustive()
    }
}

impl EventListener for PythonListener {
    fn on_gc(&self, event: &GcEvent) {
        // After the interpreter's end nobody listens. An exception concerns no call of anybody's.
        Python::try_attach(|py| {
            if let Err(error) = order::listen(|| self.tell(py, event)) {
                error.write_unraisable(py, Some(self.call.bind(py)));
            }
        });
    }
}

fn describe<'py>(py: Python<'py>, event: &GcEvent) -> PyResult<Bound<'py, PyDict>> {
    let about = PyDict::new(py);
    match event {
        GcEvent::Begun { job, victims, bytes, live_bytes, .. } => {
            about.set_item("event", "begun")?;
            about.set_item("job", job)?;
            about.set_item("victims", victims)?;
            about.set_item("bytes", bytes)?;
            about.set_item("live_bytes", live_bytes)?;
        }
        GcEvent::Progress { job, bytes_done, bytes_to_do, .. } => {
            about.set_item("event", "progress")?;
            about.set_item("job", job)?;
            about.set_item("bytes_done", bytes_done)?;
            about.set_item("bytes_to_do", bytes_to_do)?;
        }
        GcEvent::Ended { job, report, .. } => {
            about.set_item("event", "ended")?;
            about.set_item("job", job)?;
            about.set_item("report", report::gc(py, report)?)?;
        }
        GcEvent::Failed { job, error, .. } => {
            about.set_item("event", "failed")?;
            about.set_item("job", job)?;
            about.set_item("error", error.to_string())?;
        }
        GcEvent::Quarantined { job, segment, error, .. } => {
            about.set_item("event", "quarantined")?;
            about.set_item("job", job)?;
            about.set_item("segment", segment)?;
            about.set_item("error", error.to_string())?;
        }
        _ => about.set_item("event", "unknown")?,
    }
    Ok(about)
}
