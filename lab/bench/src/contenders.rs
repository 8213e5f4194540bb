//! Lists the contenders.

/// The language of a contender, which determines how it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// One of our layers, with arguments for the program `layers`. The second list is for calls
    /// with many messages.
    Own(&'static [&'static str], &'static [&'static str]),
    /// A peer in Rust, with its folder in `lab/peers`.
    Rust(&'static str),
    Go(&'static str),
    Node(&'static str),
    Python(&'static str),
    Java(&'static str),
    /// A program in this language in which one caller uses our functions. It runs in one process
    /// per caller.
    Caller(&'static Language),
    /// The arguments of our own program for such a caller, which uses a plain table instead of the
    /// functions.
    Plain(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy)]
pub struct Contender {
    pub name: &'static str,
    pub language: Language,
    /// The number of concurrent callers that send one message per call. It is the fastest of 4, 16,
    /// 64 and 200, each of which was measured for a second.
    pub callers: usize,
    /// Set if the contender drains so fast that only a tenfold backlog takes a measurable time.
    pub is_quick: bool,
}

const fn own(
    name: &'static str,
    one: &'static [&'static str],
    many: &'static [&'static str],
    callers: usize,
) -> Contender {
    Contender { name, language: Language::Own(one, many), callers, is_quick: true }
}

const fn peer(name: &'static str, language: Language, callers: usize) -> Contender {
    Contender { name, language, callers, is_quick: false }
}

const fn caller(name: &'static str, language: &'static Language) -> Contender {
    Contender { name, language: Language::Caller(language), callers: 8, is_quick: true }
}

/// Trunkline's own contenders, the peers grouped by language, and the callers that run in separate
/// processes.
pub const CONTENDERS: &[Contender] = &[
    own("trunkline", &["coalesced"], &["queue"], 1024),
    own("trunkline-bytea", &["coalesced", "bytea"], &["queue", "bytea"], 1024),
    own("trunkline-at-most-once", &["queue", "take"], &["queue", "take"], 16),
    own("statements", &["statements"], &["statements"], 16),
    own("sql", &["sql"], &["sql"], 16),
    own("queue", &["queue"], &["queue"], 16),
    own("coalesced", &["coalesced"], &["coalesced"], 1024),
    own("worker", &["worker"], &["worker"], 1024),
    own("worker-bytea", &["worker", "bytea"], &["worker", "bytea"], 1024),
    own("trunkline-poll", &["coalesced"], &["queue"], 1024),
    own("trunkline-notify", &["coalesced"], &["queue"], 1024),
    own("hand-over", &["hand-over"], &["hand-over"], 16),
    own("striped", &["sharded"], &["sharded"], 1024),
    own("striped-round-robin", &["sharded", "round-robin"], &["sharded", "round-robin"], 1024),
    own("striped-jobs", &["sharded", "jobs"], &["sharded", "jobs"], 1024),
    own("priorities", &["priorities"], &["priorities"], 1024),
    own("unique", &["unique"], &["unique"], 1024),
    own("keys", &["keys"], &["keys"], 1024),
    own("keys-4-workers", &["keys", "4"], &["keys", "4"], 1024),
    own("exactly-once", &["queue"], &["queue"], 16),
    own("exactly-once-sql", &["sql"], &["sql"], 16),
    Contender { is_quick: true, ..peer("hasql-queue", Language::Rust("hasql-queue"), 64) },
    peer("pgmq", Language::Rust("pgmq"), 64),
    Contender { is_quick: true, ..peer("pgq", Language::Rust("pgq"), 64) },
    peer("graphile-worker-rs", Language::Rust("graphile-worker-rs"), 16),
    peer("apalis-postgres", Language::Rust("apalis-postgres"), 4),
    peer("river", Language::Go("river"), 16),
    peer("graphile-worker", Language::Node("graphile-worker"), 16),
    peer("pg-boss", Language::Node("pg-boss"), 16),
    peer("awa", Language::Python("awa"), 4),
    peer("pgqueuer", Language::Python("pgqueuer"), 4),
    peer("procrastinate", Language::Python("procrastinate"), 16),
    caller("library-process", &Language::Own(&["caller", "library"], &[])),
    caller("psycopg", &Language::Python("psycopg")),
    caller("pgx", &Language::Go("pgx")),
    caller("node-postgres", &Language::Node("node-postgres")),
    caller("jdbc", &Language::Java("jdbc")),
    peer("plain-insert", Language::Plain(&["caller", "insert"]), 8),
    peer("plain-insert-and-notify", Language::Plain(&["caller", "insert-and-notify"]), 8),
];

/// Returns the contender with that name.
pub fn named(name: &str) -> Contender {
    *CONTENDERS.iter().find(|contender| contender.name == name).expect("suites name contenders of the table")
}

impl Contender {
    /// Returns true if each caller runs in a separate process.
    pub fn is_one_caller(&self) -> bool {
        matches!(self.language, Language::Caller(_) | Language::Plain(_))
    }

    pub fn is_own(&self) -> bool {
        matches!(self.language, Language::Own(..) | Language::Caller(_))
    }
}
