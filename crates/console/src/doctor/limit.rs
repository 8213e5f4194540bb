//! The time limits of an examination.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{
    Finding,
    findings::{AGAIN, unchecked},
};

/// The limit for the whole examination. A check that has not ended by then is a finding.
const ALL: Duration = Duration::from_secs(60);
/// The limit for one answer of the server. Exceeding the limit is a finding.
const ANSWER: Duration = Duration::from_secs(15);
/// The limit for the first answer. The library gives up a lost server earlier.
const FIRST_ANSWER: Duration = Duration::from_secs(45);

/// The end of an examination.
#[derive(Debug, Clone, Copy)]
pub struct Limit(Instant);

/// The limit that a check exceeded.
#[derive(Debug, Clone, Copy)]
pub enum Late {
    Answer(Duration),
    /// The limit of the examination, which came before the limit of the answer.
    Rest,
    /// The limit of the examination, which had come before.
    All,
}

impl Limit {
    pub fn starting_now() -> Self {
        Self(Instant::now() + ALL)
    }

    /// Waits for an answer of the server.
    pub async fn answer<T>(self, answer: impl Future<Output = T>) -> Result<T, Late> {
        self.within(ANSWER, answer).await
    }

    /// Waits for the first answer, which may need a new connection.
    pub async fn first<T>(self, answer: impl Future<Output = T>) -> Result<T, Late> {
        self.within(FIRST_ANSWER, answer).await
    }

    async fn within<T>(self, most: Duration, answer: impl Future<Output = T>) -> Result<T, Late> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Late::All);
        }
        let late = if left < most { Late::Rest } else { Late::Answer(most) };
        timeout(most.min(left), answer).await.map_err(|_| late)
    }
}

impl Late {
    /// Returns true if the server was asked, and had some time to answer.
    pub fn was_asked(self) -> bool {
        !matches!(self, Self::All)
    }

    /// Returns the finding that a check did not end within the limit.
    pub fn finding(self, check: &'static str, queue: Option<&str>) -> Finding {
        match self {
            Self::Answer(most) => {
                let reason =
                    format!("the server did not answer within {} s, or has no free connection", most.as_secs());
                unchecked(check, queue, &reason, AGAIN)
            }
            // The reason differs from those of other findings, so that it is not merged with them.
            Self::Rest | Self::All => Finding {
                what: format!("this was not checked within the doctor's limit of {} s", ALL.as_secs()),
                why: "The server was slow, or had no free connection. It is unknown whether anything is wrong here."
                    .to_owned(),
                ..unchecked(check, queue, "", AGAIN)
            },
        }
    }
}
