//! Makes histories. Times are in milliseconds from the start.

use crate::{
    check::{Finding, check, check_run},
    faults::Happened,
    folder::{About, Evidence},
    history::{Became, Call, Micros, Named, Op, Outcome, Verb},
    plan,
    samples::Sample,
    tables::{Entry, Kept, Tables, Waiting},
    tag,
};

const BEGAN: Micros = 1_000_000_000;

pub fn micros(ms: u64) -> Micros {
    BEGAN + ms * 1000
}

#[derive(Debug, Clone)]
pub struct Made {
    pub evidence: Evidence,
}

type Message = (i64, i32, u64);

impl Made {
    pub fn new() -> Self {
        let about = About {
            seed: 1,
            seconds: 60,
            faults: Vec::new(),
            mutant: None,
            server: "18".to_owned(),
            began: BEGAN,
            ended: BEGAN + 60_000_000,
            misbehaved: Vec::new(),
            skipped: Vec::new(),
        };
        let tables = Tables { accounts: (0..16).map(|nr| (nr, 0, 0)).collect(), ..Tables::default() };
        Self { evidence: Evidence { about, ops: Vec::new(), faults: Vec::new(), tables, samples: Vec::new() } }
    }

    /// Adds an operation that takes 10 ms and succeeds.
    pub fn op(&mut self, call: Call, ms: u64) -> &mut Op {
        let nr = self.evidence.ops.len() as u64 + 1;
        self.evidence.ops.push(Op {
            process: "made-0.0".to_owned(),
            nr,
            call,
            began: micros(ms),
            ended: micros(ms + 10),
            outcome: Outcome::Ok,
            ids: Vec::new(),
            got: Vec::new(),
            lost: Vec::new(),
            why: String::new(),
            became: Became::New,
        });
        let last = self.evidence.ops.len() - 1;
        &mut self.evidence.ops[last]
    }

    pub fn enqueued_at(&mut self, queue: &str, tag: u64, id: i64, ms: u64) {
        self.op(Call::new(Verb::Enqueue, queue).tags(vec![tag]), ms).ids = vec![id];
    }

    /// Adds an enqueue that begins at `tag` ms and takes 10 ms.
    pub fn enqueued(&mut self, queue: &str, tag: u64, id: i64) {
        self.enqueued_at(queue, tag, id, tag);
    }

    pub fn enqueue_unknown(&mut self, queue: &str, tag: u64) {
        self.op(Call::new(Verb::Enqueue, queue).tags(vec![tag]), 0).outcome = Outcome::Unknown;
    }

    pub fn enqueue_failed(&mut self, queue: &str, tag: u64) {
        self.op(Call::new(Verb::Enqueue, queue).tags(vec![tag]), 0).outcome = Outcome::Failed;
    }

    pub fn leased(&mut self, queue: &str, ms: u64, messages: &[Message]) {
        self.op(Call::new(Verb::Lease, queue).n(messages.len()).ms(plan::LEASE.as_millis() as u64), ms).got =
            messages.to_vec();
    }

    pub fn taken(&mut self, queue: &str, ms: u64, messages: &[Message]) {
        self.op(Call::new(Verb::Take, queue).n(messages.len()), ms).got = messages.to_vec();
    }

    /// Adds a dequeue that could have returned more messages.
    pub fn short(&mut self, queue: &str, ms: u64, messages: &[Message]) {
        self.op(Call::new(Verb::Take, queue).n(messages.len() + 5), ms).got = messages.to_vec();
    }

    pub fn listened(&mut self, queue: &str, from: u64, to: u64, messages: &[Message]) {
        let op = self.op(Call::new(Verb::Take, queue).n(10), from);
        (op.ended, op.got) = (micros(to), messages.to_vec());
    }

    pub fn take_unknown(&mut self, queue: &str, ms: u64, n: usize) -> &mut Op {
        let op = self.op(Call::new(Verb::Take, queue).n(n), ms);
        op.outcome = Outcome::Unknown;
        op
    }

    pub fn ended(&mut self, verb: Verb, queue: &str, ms: u64, lease: Named) {
        self.op(Call::new(verb, queue).named(vec![lease]), ms).ids = vec![lease.0];
    }

    pub fn extended(&mut self, queue: &str, ms: u64, lease: Named, by: u64) {
        self.op(Call::new(Verb::Extend, queue).named(vec![lease]).ms(by), ms);
    }

    pub fn refused(&mut self, verb: Verb, queue: &str, ms: u64, lease: Named) {
        self.op(Call::new(verb, queue).named(vec![lease]), ms).lost = vec![lease.0];
    }

    pub fn unknown(&mut self, verb: Verb, queue: &str, ms: u64, lease: Named) {
        self.op(Call::new(verb, queue).named(vec![lease]), ms).outcome = Outcome::Unknown;
    }

    fn with_effect(&mut self, verb: Verb, ms: u64, message: Message) -> String {
        let named = if verb == Verb::AckIn { vec![(message.0, message.1)] } else { Vec::new() };
        let op = self.op(Call::new(verb, plan::EXACT).n(1).named(named), ms);
        op.got = vec![message];
        op.name()
    }

    /// Adds a committed transaction with its entry in the ledger.
    pub fn entered(&mut self, verb: Verb, ms: u64, message: Message) {
        let op = self.with_effect(verb, ms, message);
        self.entry(message.2, op);
    }

    pub fn rolled_back(&mut self, verb: Verb, ms: u64, message: Message) -> String {
        let name = self.with_effect(verb, ms, message);
        self.evidence.ops.last_mut().expect("just made").outcome = Outcome::Failed;
        name
    }

    pub fn entry(&mut self, tag: u64, op: String) {
        let amount = tag::amount(tag);
        self.evidence.tables.ledger.push(Entry { tag, amount, op });
        let account = &mut self.evidence.tables.accounts[tag::account(tag) as usize];
        *account = (account.0, account.1 + amount, account.2 + 1);
    }

    pub fn waiting(&mut self, queue: &str, id: i64, tag: u64) {
        self.evidence.tables.waiting.push(Waiting { queue: queue.to_owned(), id, attempt: 0, tag });
    }

    /// Adds a buried message to the dead letters.
    pub fn dead(&mut self, queue: &str, id: i64, tag: u64, attempt: i32) {
        let kept = Kept { queue: queue.to_owned(), id, attempt, tag, error: plan::BURIED.to_owned() };
        self.evidence.tables.dead.push(kept);
    }

    pub fn archived(&mut self, queue: &str, id: i64, tag: u64, attempt: i32) {
        let kept = Kept { queue: queue.to_owned(), id, attempt, tag, error: String::new() };
        self.evidence.tables.archive.push(kept);
    }

    pub fn ticked(&mut self, schedule: usize, second: i64) {
        self.evidence.tables.ticks.push((plan::schedule(schedule), second));
    }

    pub fn fault(&mut self, fault: &str, from: u64, to: u64) {
        let happened = Happened { fault: fault.to_owned(), detail: String::new(), from: micros(from), to: micros(to) };
        self.evidence.faults.push(happened);
    }

    pub fn sampled(&mut self, ms: u64, process: &str, kilobytes: u64) {
        let memory = vec![(process.to_owned(), kilobytes)];
        self.evidence.samples.push(Sample { at: micros(ms), memory, connections: 1, locks: 0 });
    }

    /// Returns the rules that were broken.
    pub fn rules(mut self) -> Vec<&'static str> {
        self.evidence.ops.sort_by_key(|op| op.began);
        check(&self.evidence).into_iter().map(|finding| finding.rule).collect()
    }

    /// Returns the findings if the history is that of a whole run.
    pub fn found_in_run(mut self) -> Vec<Finding> {
        self.evidence.ops.sort_by_key(|op| op.began);
        check_run(&self.evidence)
    }
}
