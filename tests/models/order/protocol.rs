//! What is gone through, and what may happen in it.

/// Messages of one key, holders of its lane, and what may happen to them. Everything goes wrong
/// with the first holder alone; what the others ask of the server is done and answered at once.
#[derive(Debug, Clone)]
pub(super) struct Protocol {
    pub messages: usize,
    pub holders: usize,
    pub per_key: usize,
    /// So many wait behind the one that runs, at most.
    pub behind: usize,
    /// The clock stops here.
    pub end: u8,
    /// Deliveries that a message has, at most.
    pub attempts: i32,
    /// Handlers that fail, and messages that are given up although they could run.
    pub failures: u8,
    pub given_up: u8,
    /// Acknowledgements are done at once.
    pub acks_at_once: bool,
    /// Statements whose answers are lost, and holders that crash.
    pub losses: u8,
    pub crashes: u8,
    pub defect: Option<Defect>,
}

/// What the protocol would be without one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// Leases are ended by the message alone, whoever has it.
    NoFence,
    /// What is behind a message that failed runs.
    NothingGoesBack,
    /// What comes while something is on its way back is taken.
    NoBar,
    /// A message that is to be retried does not hold up its key.
    KeyNotHeld,
    /// A lane is not held for as long as the leases in it, when they are renewed.
    HoldNotRenewed,
    /// A lane is left although something is leased in it.
    LeavesLeases,
    /// Whose a lane is, is not asked again when it is locked.
    StaleList,
    /// What a lane's holder leases cuts short how long the lane is held.
    HoldCutShort,
    /// A holder goes on under its number although it does not know what it has leased.
    SameNumber,
}
