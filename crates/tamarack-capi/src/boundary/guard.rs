//! No panic passes to C, and misuse ends the process with a message.
//!
//! Every exported function runs in [`contained`] or [`reported`]. What can fail is reported through the `errptr`,
//! and so is a panic. A function without one cannot tell, so a panic in it ends the process.

use std::any::Any;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::arguments::ErrorPointer;
use crate::status::Status;

/// What a client did that no function can go on after.
struct Misuse(String);

/// Ends the process, from inside a function that is contained, with a message.
pub fn misuse(what: String) -> ! {
    // Not by `panic!`: a backtrace of ours says nothing about the client.
    resume_unwind(Box::new(Misuse(what)))
}

/// Runs `work`, in a function that cannot fail.
pub fn contained<T>(function: &str, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|thrown| abort(function, &*thrown))
}

/// Runs `work`, in a function that tells errors through `errors`, and gives `failed` if there was one.
pub fn reported<T>(
    function: &str,
    errors: ErrorPointer,
    failed: T,
    work: impl FnOnce() -> Result<T, Status>,
) -> T {
    let status = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return value,
        Ok(Err(status)) => status,
        Err(thrown) if thrown.is::<Misuse>() => abort(function, &*thrown),
        Err(thrown) => Status::internal(&said(&*thrown)),
    };
    contained(function, || errors.set(&status));
    failed
}

fn said(thrown: &(dyn Any + Send)) -> String {
    let text = thrown.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| thrown.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

fn abort(function: &str, thrown: &(dyn Any + Send)) -> ! {
    let why = match thrown.downcast_ref::<Misuse>() {
        Some(Misuse(what)) => what.clone(),
        None => format!("internal failure: {}", said(thrown)),
    };
    // Where the message cannot be written, the process ends all the same.
    drop(writeln!(std::io::stderr(), "tamarack: {function}: {why}"));
    std::process::abort()
}
