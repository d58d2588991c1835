//! How a command ends: the exit statuses, and the one line on standard error that explains a failure.
//!
//! Every command returns `Result<Outcome>`. Statuses are part of the interface (see `--help`): scripts branch
//! on them, so a kind of failure never changes its number.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tamarack::ErrorKind;

/// `Result` with this crate's [`Failure`].
pub type Result<T> = std::result::Result<T, Failure>;

/// The end of a command that ran as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done: status 0.
    Done,
    /// The command ran and its answer is "no": a key is missing, a check found problems, a repair, an import or an export
    /// left something out. What exactly has already been printed. Status 1.
    Negative,
}

impl Outcome {
    /// [`Outcome::Done`] if `positive`.
    pub fn positive_if(positive: bool) -> Self {
        if positive { Self::Done } else { Self::Negative }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Negative => Self::from(1),
        }
    }
}

/// Why a command could not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request is wrong as it stands. Status 2.
    Usage(String),
    /// The engine said no; the status follows its kind.
    Engine(tamarack::Error),
    /// The operating system failed `action`. Status 3.
    Io {
        /// What was being done, with the file's name.
        action: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Whoever reads standard output has gone; there is nobody left to tell. Status 0, nothing is printed.
    OutputClosed,
    /// Input that cannot be used, or anything else without a kind of its own. Status 3.
    Other(String),
    /// A LevelDB directory that is to be imported is damaged. Status 4.
    Source(tamarack_leveldb::Damage),
    /// The database gave back other bytes than were written to it. Status 4.
    Mismatch(String),
}

impl Failure {
    /// The operating system failed `verb` on `path`.
    pub fn io(verb: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { action: format!("{verb} {}", path.display()), source }
    }

    /// Writing to standard output failed; a closed pipe is not worth a message.
    pub fn output(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Io { action: "write to standard output".into(), source }
        }
    }

    /// The word for this kind of failure in JSON.
    fn kind(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Engine(error) => match error.kind() {
                ErrorKind::InvalidArgument => "usage",
                ErrorKind::Corruption => "corruption",
                ErrorKind::Locked => "locked",
                ErrorKind::ReadOnly => "read-only",
                ErrorKind::Unsupported => "unsupported",
                ErrorKind::NoSpace => "no-space",
                _ => "io",
            },
            Self::Io { .. } => "io",
            Self::OutputClosed => "output-closed",
            Self::Other(_) => "other",
            Self::Source(_) => "corruption",
            Self::Mismatch(_) => "mismatch",
        }
    }

    fn status(&self) -> u8 {
        match self.kind() {
            "output-closed" => 0,
            "usage" => 2,
            "corruption" | "mismatch" => 4,
            "locked" => 5,
            _ => 3,
        }
    }

    /// The exit status of the process.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status())
    }

    /// One line on standard error: plain text, or an object under `--json`.
    pub fn report(&self, json: bool) {
        if matches!(self, Self::OutputClosed) {
            return;
        }
        if json {
            tell(&self.to_json());
        } else {
            tell(&format!("tamarack: {self}"));
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let mut object = json!({
            "error": self.kind(),
            "message": self.to_string(),
            "exit_status": self.status(),
        });
        if let Self::Engine(error) = self
            && let Some(corruption) = error.as_corruption()
        {
            object["file"] = json!(corruption.file.display().to_string());
            object["offset"] = json!(corruption.offset);
            object["expected"] = json!(corruption.expected);
            object["found"] = json!(corruption.found);
        }
        if let Self::Source(damage) = self {
            object["file"] = json!(damage.file.display().to_string());
            object["offset"] = json!(damage.offset);
            object["expected"] = json!(damage.expected);
            object["found"] = json!(damage.found);
        }
        object
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Other(message) | Self::Mismatch(message) => f.write_str(message),
            Self::Engine(error) if error.kind() == ErrorKind::Corruption => {
                write!(
                    f,
                    "{error} (`tamarack check` lists what is damaged, `tamarack repair` saves what is not)"
                )
            }
            Self::Engine(error) => error.fmt(f),
            Self::Source(damage) => write!(f, "{damage} (--salvage imports what is whole)"),
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::OutputClosed => f.write_str("standard output was closed"),
        }
    }
}

impl From<tamarack::Error> for Failure {
    fn from(error: tamarack::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<tamarack_leveldb::Error> for Failure {
    fn from(error: tamarack_leveldb::Error) -> Self {
        use tamarack_leveldb::Error;
        match error {
            Error::Io { action, path, source } => Self::io(action, &path, source),
            Error::Damage(damage) => Self::Source(damage),
            Error::Locked { .. } => tamarack::Error::locked(error.to_string()).into(),
            Error::Comparator { .. } => {
                Self::Other(format!("{error}: --any-comparator imports them in the order of their bytes"))
            }
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<tamarack_bench::Failure<tamarack::Error>> for Failure {
    fn from(failure: tamarack_bench::Failure<tamarack::Error>) -> Self {
        match failure {
            tamarack_bench::Failure::Usage(message) => Self::Usage(message),
            tamarack_bench::Failure::Mismatch(message) => Self::Mismatch(message),
            tamarack_bench::Failure::Store(error) => Self::Engine(error),
            tamarack_bench::Failure::Io(source) => {
                Self::Io { action: "take the database's files out of the page cache".into(), source }
            }
        }
    }
}

/// Writes a line to standard error. Where nobody reads that, nobody can be told, and the work goes on.
pub fn tell(line: &impl fmt::Display) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_documented_status() {
        let path = Path::new("000001.vlog");
        let cases = [
            (Failure::Usage("x".into()), 2),
            (tamarack::Error::invalid_argument("x").into(), 2),
            (Failure::io("read", path, io::Error::other("x")), 3),
            (Failure::Other("x".into()), 3),
            (tamarack::Error::io("read", path, io::Error::other("x")).into(), 3),
            (tamarack::Error::corruption(path, 7, "a", "b").into(), 4),
            (Failure::Mismatch("x".into()), 4),
            (tamarack::Error::locked("x").into(), 5),
        ];
        for (failure, status) in cases {
            assert_eq!(failure.status(), status, "{failure:?}");
        }
    }

    #[test]
    fn corruption_is_reported_with_its_place() {
        let failure = Failure::from(tamarack::Error::corruption(Path::new("f"), 7, "a", "b"));
        let object = failure.to_json();
        assert_eq!(object["error"], "corruption");
        assert_eq!(object["file"], "f");
        assert_eq!(object["offset"], 7);
        assert_eq!(object["exit_status"], 4);
    }
}
