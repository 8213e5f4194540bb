//! Who takes part.

/// What a contender is written in, which says how it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A layer of ours: words for the program `layers`; the second are for calls with many messages.
    Own(&'static [&'static str], &'static [&'static str]),
    /// Its folder in `bench/peers` for each of the others.
    Rust(&'static str),
    Go(&'static str),
    Node(&'static str),
    Python(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct Contender {
    pub name: &'static str,
    pub language: Language,
    /// With how many callers at the same time it sends fastest, one message a call; found by trying 1, 4, 16, 64, 256 and 1,024.
    pub callers: usize,
}

const fn own(
    name: &'static str,
    one: &'static [&'static str],
    many: &'static [&'static str],
    callers: usize,
) -> Contender {
    Contender { name, language: Language::Own(one, many), callers }
}

const fn peer(name: &'static str, language: Language, callers: usize) -> Contender {
    Contender { name, language, callers }
}

/// Ours first, then the peers in the order of their languages.
pub const CONTENDERS: &[Contender] = &[
    own("trunkline", &["coalesced"], &["queue"], 1024),
    own("trunkline-bytea", &["coalesced", "bytea"], &["queue", "bytea"], 1024),
    own("trunkline-at-most-once", &["queue", "take"], &["queue", "take"], 16),
    own("sql", &["sql"], &["sql"], 16),
    own("queue", &["queue"], &["queue"], 16),
    own("coalesced", &["coalesced"], &["coalesced"], 1024),
    peer("hasql-queue", Language::Rust("hasql-queue"), 16),
    peer("pgmq", Language::Rust("pgmq"), 16),
    peer("pgq", Language::Rust("pgq"), 16),
    peer("graphile-worker-rs", Language::Rust("graphile-worker-rs"), 16),
    peer("apalis-postgres", Language::Rust("apalis-postgres"), 16),
    peer("river", Language::Go("river"), 16),
    peer("graphile-worker", Language::Node("graphile-worker"), 16),
    peer("pg-boss", Language::Node("pg-boss"), 16),
    peer("awa", Language::Python("awa"), 16),
    peer("pgqueuer", Language::Python("pgqueuer"), 16),
    peer("procrastinate", Language::Python("procrastinate"), 16),
];

/// The one of that name.
pub fn named(name: &str) -> Contender {
    *CONTENDERS.iter().find(|contender| contender.name == name).expect("suites name contenders of the table")
}

impl Contender {
    pub fn is_own(&self) -> bool {
        matches!(self.language, Language::Own(..))
    }
}
