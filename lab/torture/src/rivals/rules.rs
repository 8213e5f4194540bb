//! Defines the rules of the table, in the order of its rows.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RivalRule {
    Stored,
    Nowhere,
    Ids,
    Early,
    Fence,
    Refused,
    Again,
    Attempts,
    Dead,
    Back,
    Effects,
    GoesOn,
}

impl RivalRule {
    pub const ALL: [Self; 12] = [
        Self::Stored,
        Self::Nowhere,
        Self::Ids,
        Self::Early,
        Self::Fence,
        Self::Refused,
        Self::Again,
        Self::Attempts,
        Self::Dead,
        Self::Back,
        Self::Effects,
        Self::GoesOn,
    ];

    pub fn says(self) -> &'static str {
        match self {
            Self::Stored => "an enqueue that was `Ok` does not vanish",
            Self::Nowhere => "nothing comes out of nowhere, or damaged",
            Self::Ids => "ids are given once and stay",
            Self::Early => "a message is not handed out again while its lease runs",
            Self::Fence => "a worker whose lease is over does not end what another holds",
            Self::Refused => "the holder's end is not refused while its lease runs",
            Self::Again => "an acknowledged message does not come again",
            Self::Attempts => "attempts are bounded (5)",
            Self::Dead => "a message that used them up is kept",
            Self::Back => "what a lost worker held comes back",
            Self::Effects => "an effect in the transaction that ends the message is there once",
            Self::GoesOn => "processes go on by themselves after each fault",
        }
    }

    /// Returns the checker's findings that belong to this rule.
    pub fn findings(self) -> &'static [&'static str] {
        match self {
            Self::Nowhere => &["a message came out of nowhere"],
            Self::Ids => &["a message has an id that its enqueue did not return", "two messages have one id"],
            Self::Early => &["one lease was given twice", "a message was leased again while its lease ran"],
            Self::Refused => &["the end of a lease was refused while it ran"],
            Self::Again => {
                &["two ends of one lease were Ok", "a message is there that was acknowledged, taken or archived"]
            }
            Self::Attempts => &["a message had more attempts than are allowed"],
            Self::Back => &["a message could not be drained"],
            Self::GoesOn => &["a process ended by itself, or did not end"],
            Self::Stored | Self::Fence | Self::Dead | Self::Effects => &[],
        }
    }
}
