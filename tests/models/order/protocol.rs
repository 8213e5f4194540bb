//! The parameters of the model, and the defects that it must detect.

/// The messages of one key, the holders of its partition, and the failures that may happen. Only
/// the first holder fails. The server executes and answers the requests of all other holders
/// immediately.
#[derive(Debug, Clone)]
pub(super) struct Protocol {
    pub messages: usize,
    pub holders: usize,
    pub per_key: usize,
    /// The maximum number of messages that wait behind the running message.
    pub behind: usize,
    /// The maximum value of the clock.
    pub end: u8,
    /// The maximum number of deliveries of a message.
    pub attempts: i32,
    /// The maximum number of failing handlers.
    pub failures: u8,
    /// The maximum number of deliveries whose payload is unreadable.
    pub unreadable: u8,
    /// The maximum number of messages that are given up although they could run.
    pub given_up: u8,
    /// True if acknowledgements are executed immediately.
    pub acks_at_once: bool,
    /// The maximum number of lost answers.
    pub losses: u8,
    /// The maximum number of crashes of holders.
    pub crashes: u8,
    pub defect: Option<Defect>,
}

/// Variants of the protocol, each without one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// A lease is ended by the message's id alone, regardless of its holder.
    NoFence,
    /// Messages behind a failed message are run.
    NothingGoesBack,
    /// Messages are accepted while other messages are being given back.
    NoBar,
    /// Messages behind an unreadable message are run.
    UnreadableIsPassed,
    /// A message that waits for its retry does not block its key.
    KeyNotHeld,
    /// A renewal extends the leases in a partition, but not the hold on the partition.
    HoldNotRenewed,
    /// A holder leaves a partition while messages in it are leased.
    LeavesLeases,
    /// The partition's holder is not checked again under the partition's lock.
    StaleList,
    /// A lease statement of the partition's holder can shorten the hold on the partition.
    HoldCutShort,
    /// A holder keeps its number although it does not know which messages it has leased.
    SameNumber,
}
