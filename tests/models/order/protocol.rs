//! The parameters of the model, and its defects.

/// Messages of one key, holders of its lane, and the failures that may happen. Only the first
/// holder fails. The server executes and answers the requests of the others at once.
#[derive(Debug, Clone)]
pub(super) struct Protocol {
    pub messages: usize,
    pub holders: usize,
    pub per_key: usize,
    /// The most messages that wait behind the running one.
    pub behind: usize,
    /// The last value of the clock.
    pub end: u8,
    /// The most deliveries of a message.
    pub attempts: i32,
    /// Limits for failing handlers, and for messages that are given up although they could run.
    pub failures: u8,
    pub given_up: u8,
    /// Acknowledgements are executed at once.
    pub acks_at_once: bool,
    /// Limits for lost answers, and for crashes of holders.
    pub losses: u8,
    pub crashes: u8,
    pub defect: Option<Defect>,
}

/// Variants of the protocol without one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// A lease is ended by the message's id alone, whichever holder has it.
    NoFence,
    /// Messages behind a failed one run.
    NothingGoesBack,
    /// Messages are accepted while others are on their way back.
    NoBar,
    /// A message that waits for its retry does not hold up its key.
    KeyNotHeld,
    /// A renewal extends the leases in a lane, but not the hold on the lane.
    HoldNotRenewed,
    /// A lane is left while messages in it are leased.
    LeavesLeases,
    /// The lane's holder is not checked again under the lane's lock.
    StaleList,
    /// A lease statement of the lane's holder can shorten the hold on the lane.
    HoldCutShort,
    /// A holder keeps its number although it does not know what it has leased.
    SameNumber,
}
