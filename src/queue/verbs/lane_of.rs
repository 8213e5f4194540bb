//! The lane of a message: the number of its priority, or of its key's partition.

use crate::{
    error::{Error, Result},
    queue::{handle::Shared, message::keys},
};

impl Shared {
    /// Reads the current partitions from the database.
    pub async fn learn_lanes(&self) -> Result<()> {
        let now_is = self.db.describe_queue(self.name()).await?;
        self.key_lanes.set(now_is.first_lane, now_is.partitions);
        Ok(())
    }

    /// Returns the lane of a message with this priority and key, based on the partitions as last
    /// read.
    ///
    /// # Errors
    /// The queue has no such priority, the message has a key although the queue has no keys, or the
    /// message has no key although the queue has keys.
    pub fn lane_of(&self, priority: u8, key: Option<&str>) -> Result<u16> {
        let (lane, name) = (self.lane(priority)?, self.name());
        let told = match key {
            None if self.is_keyed() => {
                format!("queue {name:?} needs a key for each message: enqueue Draft::new(payload).key(\"customer 17\")")
            }
            None => return Ok(lane.into()),
            Some(_) if !self.is_keyed() => {
                format!("queue {name:?} has no keys: create one with Settings::partitions, or leave the key out")
            }
            Some(key) if key.is_empty() || key.len() > keys::LONGEST => {
                format!("a key of {} bytes is out of bounds: 1 to {}", key.len(), keys::LONGEST)
            }
            Some(key) => return Ok(self.key_lanes.of(key)),
        };
        Err(Error::invalid(told))
    }

    /// Returns the lane of a priority.
    ///
    /// # Errors
    /// The queue has no such priority.
    pub fn lane(&self, priority: u8) -> Result<u8> {
        match self.description.priorities {
            priorities if u32::from(priority) < priorities.max(1) => Ok(priority),
            0 | 1 => Err(Error::invalid(format!(
                "queue {:?} has no priorities, and the message has priority {priority}: create one with Settings::priorities",
                self.name()
            ))),
            priorities => Err(Error::invalid(format!(
                "queue {:?} has no priority {priority}: it has those from 0 to {}",
                self.name(),
                priorities - 1
            ))),
        }
    }
}
