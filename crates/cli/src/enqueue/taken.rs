//! Counts lines whose unique keys other messages already have.

use trunkline::Enqueued;

use crate::print::{self, thousands};

#[derive(Debug, Default)]
pub struct Taken {
    duplicates: u64,
    replaced: u64,
}

impl Taken {
    pub fn met(&mut self, line: Enqueued) {
        match line {
            Enqueued::New(_) => {}
            Enqueued::Duplicate(_) => self.duplicates += 1,
            Enqueued::Replaced(_) => self.replaced += 1,
        }
    }

    pub fn count(&self) -> u64 {
        self.duplicates + self.replaced
    }

    /// Reports the numbers of these lines.
    pub fn tell(&self) {
        match self.duplicates {
            0 => {}
            1 => print::note("one line was not enqueued: another message has its unique key"),
            many => {
                print::note(format!(
                    "{} lines were not enqueued: other messages have their unique keys",
                    thousands(many)
                ));
            }
        }
        match self.replaced {
            0 => {}
            1 => print::note("one line replaced a waiting message with its unique key"),
            many => print::note(format!("{} lines replaced waiting messages with their unique keys", thousands(many))),
        }
    }
}
