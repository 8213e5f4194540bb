//! Estimates how many messages to dequeue at a time, from the sizes of the last messages.

/// The target size of one dequeue, in bytes.
pub const CHUNK: u64 = 512 << 10;

/// An estimate of the size of messages.
pub struct Size {
    average: u64,
    /// The maximum of the next estimate. It grows slowly, because the next messages may be larger.
    limit: u64,
}

impl Default for Size {
    fn default() -> Self {
        Self { average: 1, limit: 16 }
    }
}

impl Size {
    /// Returns the estimated number of messages in `bytes` bytes.
    pub fn messages(&self, bytes: u64) -> u64 {
        (bytes / self.average).clamp(1, self.limit)
    }

    pub fn saw(&mut self, messages: u64, bytes: u64) {
        self.average = (bytes / messages.max(1)).max(1);
        self.limit = (self.limit * 4).min(8192);
    }
}
