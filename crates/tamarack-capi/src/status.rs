//! Errors as LevelDB's clients know them: texts that begin with the kind, from which wrappers build their own types.

use tamarack::{Error, ErrorKind};

/// An error as a client gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status(String);

impl Status {
    /// A request that cannot be served as it stands.
    pub fn invalid_argument(message: &str) -> Self {
        Self(format!("Invalid argument: {message}"))
    }

    /// A panic of ours, which said `message`.
    pub fn internal(message: &str) -> Self {
        Self(format!("IO error: internal failure: {message}"))
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        // LevelDB knows five kinds. What keeps a database from being written to is an I/O error there, and so is a
        // lock.
        let kind = match error.kind() {
            ErrorKind::InvalidArgument => "Invalid argument: ",
            ErrorKind::Corruption => "Corruption: ",
            ErrorKind::Unsupported => "Not implemented: ",
            ErrorKind::Locked => "IO error: lock ",
            _ => "IO error: ",
        };
        Self(format!("{kind}{}", error.message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_prefix_of_leveldbs() {
        let text = |error: Error| Status::from(error).text().to_owned();
        assert_eq!(text(Error::invalid_argument("a key")), "Invalid argument: a key");
        assert_eq!(text(Error::unsupported("version 9")), "Not implemented: version 9");
        assert_eq!(text(Error::locked("a is open")), "IO error: lock a is open");
        assert_eq!(text(Error::no_space("full")), "IO error: full");
        assert_eq!(text(Error::read_only("after a failure")), "IO error: after a failure");
        assert_eq!(text(Error::closed()), "IO error: the database is being closed");
        let damage = Error::corruption(std::path::Path::new("1.vlog"), 7, "a", "b");
        assert_eq!(text(damage), "Corruption: 1.vlog at offset 7: expected a, found b");
        let failed = Error::io("read", std::path::Path::new("x"), std::io::ErrorKind::NotFound.into());
        assert!(text(failed).starts_with("IO error: read x: "));
    }
}
