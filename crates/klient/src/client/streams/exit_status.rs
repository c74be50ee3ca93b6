//! The result of a process in a container.

use std::fmt;

use klient_core::Status;

use crate::{Error, ErrorKind};

/// The result of a process in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExitStatus {
    code: i32,
}

impl ExitStatus {
    /// Returns whether the process ended with code 0.
    pub fn success(self) -> bool {
        self.code == 0
    }

    /// Returns the exit code. A process that was ended by a signal has 128 plus the signal's number.
    pub fn code(self) -> i32 {
        self.code
    }

    /// Returns the number of the signal that ended the process, if the exit code has one: 9 for code 137.
    pub fn signal(self) -> Option<i32> {
        (129..=192).contains(&self.code).then_some(self.code - 128)
    }

    /// Reads the status that ends a session.
    pub(super) fn from_status(status: Status) -> Result<Self, Error> {
        if status.is_success() {
            return Ok(Self { code: 0 });
        }
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        let code = causes.iter().find(|cause| cause.reason == "ExitCode").map(|cause| cause.message.as_str());
        match code.map(str::parse) {
            Some(Ok(code)) => Ok(Self { code }),
            Some(Err(_)) => {
                let what = format!("status has an exit code that is no number: {}", code.unwrap_or_default());
                Err(Error::new(ErrorKind::Decode, what))
            }
            None => Err(status.into()),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signal() {
            Some(signal) => write!(f, "exit code {} (signal {signal})", self.code),
            None => write!(f, "exit code {}", self.code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<ExitStatus, Error> {
        ExitStatus::from_status(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn exit_status_is_read_from_the_causes() {
        assert!(read(r#"{"metadata":{},"status":"Success"}"#).unwrap().success());
        let failed = |code: &str| {
            read(&format!(
                r#"{{"status":"Failure","reason":"NonZeroExitCode","message":"boom","details":{{"causes":[{{"reason":"ExitCode","message":"{code}"}}]}}}}"#
            ))
        };
        assert_eq!(failed("3").unwrap().code(), 3);
        assert_eq!(failed("3").unwrap().signal(), None);
        assert_eq!(failed("137").unwrap().signal(), Some(9));
        assert_eq!(failed("137").unwrap().to_string(), "exit code 137 (signal 9)");
        assert_eq!(failed("three").unwrap_err().kind(), ErrorKind::Decode);
        let error = read(r#"{"status":"Failure","reason":"InternalError","code":500,"message":"no such file"}"#);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
