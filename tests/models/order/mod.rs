//! A model of the protocol of partitions. It tries every order of the steps of a few holders of a
//! partition, their server and the clock. The real [`Order`] decides for a holder. See
//! docs/design/keys.md.

mod protocol;
mod server;
mod holder;
mod tests;

use stateright::{Model, Property};

use self::{
    holder::{End, Fetch, Holder, Sent},
    protocol::Protocol,
    server::Server,
};
use crate::queue::message::Lease;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    server: Server,
    holders: Vec<Holder>,
    /// Marks the messages whose last handler completed.
    handled: Vec<bool>,
    failures: u8,
    unreadable: u8,
    given_up: u8,
    losses: u8,
    crashes: u8,
    overtook: bool,
    crowded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The clock advances.
    Tick,
    /// A holder requests `n` messages. The server lists partitions, and then leases. The answer
    /// arrives or is lost.
    Fetch(usize, usize),
    List(usize),
    Lease(usize),
    Answer(usize),
    /// The answer arrives, and the message at a position in it is unreadable.
    Unreadable(usize, usize),
    Lose(usize),
    /// The server continues a statement whose client is gone.
    Haunt(usize),
    Begin(usize),
    Done(usize),
    Fail(usize),
    /// A handler ends, and the worker knows that its lease is lost.
    Lost(usize),
    /// The server renews a running message's lease.
    Extend(usize),
    GiveUp(usize),
    Late(usize),
    GiveBack(usize),
    /// The server ends leases, and the holder receives the answer.
    End(usize, usize),
    Confirm(usize, usize),
    /// The holder receives no answer, and sends the statement again.
    Again(usize, usize),
    Leave(usize),
    Crash(usize),
}

impl State {
    fn begin(&mut self, protocol: &Protocol, at: usize) {
        let lease = self.holders[at].ready.remove(0);
        self.holders[at].running.push(lease);
        if !self.server.is_live(lease) {
            return; // no rule applies to a lease that has already expired, because no attempt to end it succeeds
        }
        let earlier = 0..lease.id as usize;
        let is_open = |message: usize| !self.server.rows[message].gone && !self.handled[message];
        self.overtook |= protocol.per_key == 1 && earlier.into_iter().any(is_open);
        let running = self.holders.iter().flat_map(|holder| &holder.running);
        self.crowded |= running.filter(|lease| self.server.is_live(**lease)).count() > protocol.per_key;
    }

    /// Records that a delivery failed. A failure after the end of the lease has no effect.
    fn fail(&mut self, lease: Lease) {
        if self.server.is_live(lease) {
            self.handled[lease.id as usize] = false;
        }
    }

    /// Performs the next half of a lease statement on the server: it lists the partitions, or
    /// leases messages.
    fn fetch(&mut self, protocol: &Protocol, number: u8, fetch: Fetch) -> Fetch {
        match fetch {
            Fetch::Sent(n) => Fetch::Listed(n, self.server.list(number)),
            Fetch::Listed(n, listed) => Fetch::Told(self.server.lease(protocol, number, n, listed)),
            fetch => fetch,
        }
    }

    fn end(&mut self, protocol: &Protocol, at: usize, nr: usize) {
        let sent = &mut self.holders[at].sent[nr];
        sent.is_done = true;
        let (end, leases) = (sent.end, sent.leases.clone());
        for lease in leases {
            match end {
                End::Ack => self.server.ack(protocol, lease),
                End::Retry => self.server.retry(protocol, lease),
                End::Release => self.server.release(protocol, lease),
            }
        }
        // An acknowledgement is done now, because its answer would not change the holder.
        if end == End::Ack || self.holders[at].has_crashed {
            self.holders[at].sent.remove(nr);
        }
    }

    /// Executes everything that a holder has sent, and answers the holder.
    fn settle(&mut self, protocol: &Protocol, at: usize) {
        loop {
            if let Fetch::Sent(n) = self.holders[at].fetch {
                let number = self.holders[at].number;
                let listed = self.server.list(number);
                let leases = self.server.lease(protocol, number, n, listed);
                self.holders[at].fetch = Fetch::None;
                self.holders[at].fetched(protocol, leases, None);
            } else if self.holders[at].has_back() {
                self.holders[at].give_back(protocol);
            } else if let Some(sent) = self.holders[at].sent.first() {
                match sent.is_done {
                    true => self.holders[at].confirm(protocol, 0),
                    false => self.end(protocol, at, 0),
                }
            } else {
                return;
            }
        }
    }

    fn is_within(&self, protocol: &Protocol) -> bool {
        self.server.rows.iter().all(|row| i32::from(row.attempt) <= protocol.attempts)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            server: Server::new(self.messages),
            holders: (0..self.holders).map(|nr| Holder::new(nr as u8 + 1)).collect(),
            handled: vec![false; self.messages],
            failures: self.failures,
            unreadable: self.unreadable,
            given_up: self.given_up,
            losses: self.losses,
            crashes: self.crashes,
            overtook: false,
            crowded: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.server.clock < self.end {
            steps.push(Step::Tick);
        }
        for (at, holder) in state.holders.iter().enumerate() {
            steps.extend((0..holder.sent.len()).map(|nr| match holder.sent[nr].is_done {
                true => Step::Confirm(at, nr),
                false => Step::End(at, nr),
            }));
            if state.losses > 0 {
                steps
                    .extend((0..holder.sent.len()).filter(|nr| holder.sent[*nr].is_done).map(|nr| Step::Again(at, nr)));
            }
            if holder.ghost.is_some() {
                steps.push(Step::Haunt(at));
            }
            if holder.has_crashed {
                continue;
            }
            let is_first = at == 0;
            steps.push(match holder.fetch {
                Fetch::None if self.losses > 0 => Step::Fetch(at, 1),
                Fetch::None => Step::Fetch(at, self.messages),
                Fetch::Sent(_) => Step::List(at),
                Fetch::Listed(..) => Step::Lease(at),
                Fetch::Told(_) => Step::Answer(at),
            });
            if let Fetch::Told(leases) = &holder.fetch
                && state.unreadable > 0
            {
                steps.extend((0..leases.len()).map(|nr| Step::Unreadable(at, nr)));
            }
            match holder.fetch {
                Fetch::None if self.crashes == 0 => steps.push(Step::Fetch(at, 1)),
                _ if is_first && state.losses > 0 && holder.ghost.is_none() => steps.push(Step::Lose(at)),
                _ => {}
            }
            if !holder.ready.is_empty() {
                steps.push(Step::Begin(at));
                steps.extend((state.given_up > 0).then_some(Step::GiveUp(at)));
            }
            if let Some(running) = holder.running.first() {
                steps.push(Step::Done(at));
                steps.extend((state.failures > 0).then_some(Step::Fail(at)));
                steps.push(if state.server.is_live(*running) { Step::Extend(at) } else { Step::Lost(at) });
            }
            if holder.has_behind() && state.given_up > 0 && is_first {
                steps.push(Step::Late(at));
            }
            if holder.has_back() {
                steps.push(Step::GiveBack(at));
            }
            if holder.is_idle() && holder.fetch == Fetch::None {
                steps.push(Step::Leave(at));
            }
            if is_first && state.crashes > 0 {
                steps.push(Step::Crash(at));
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Tick => state.server.clock += 1,
            Step::Fetch(at, n) => state.holders[at].fetch(self, n),
            Step::List(at) | Step::Lease(at) => {
                let fetch = std::mem::replace(&mut state.holders[at].fetch, Fetch::None);
                state.holders[at].fetch = state.fetch(self, last.holders[at].number, fetch);
                if self.holders == 1 && self.losses == 0 && matches!(step, Step::List(_)) {
                    // With a single holder, nothing can happen between the two halves of its
                    // statement, so both are done at once.
                    return self.next_state(&state, Step::Lease(at));
                }
            }
            Step::Answer(at) => {
                let Fetch::Told(leases) = std::mem::replace(&mut state.holders[at].fetch, Fetch::None) else {
                    return None;
                };
                state.holders[at].fetched(self, leases, None);
            }
            Step::Unreadable(at, nr) => {
                let Fetch::Told(leases) = std::mem::replace(&mut state.holders[at].fetch, Fetch::None) else {
                    return None;
                };
                state.unreadable -= 1;
                state.fail(leases[nr]);
                state.holders[at].fetched(self, leases, Some(nr));
            }
            Step::Lose(at) => {
                state.losses -= 1;
                state.holders[at].lose(self);
            }
            Step::Haunt(at) => {
                let (number, fetch) = state.holders[at].ghost.take()?;
                let fetch = state.fetch(self, number, fetch);
                state.holders[at].ghost = (!matches!(fetch, Fetch::Told(_))).then_some((number, fetch));
            }
            Step::Begin(at) => state.begin(self, at),
            Step::Done(at) => {
                state.handled[state.holders[at].running[0].id as usize] = true;
                state.holders[at].done(self);
            }
            Step::Fail(at) => {
                state.failures -= 1;
                state.fail(state.holders[at].running[0]);
                state.holders[at].failed(self, false);
            }
            Step::Lost(at) => state.holders[at].failed(self, true),
            Step::Extend(at) => state.server.extend(self, state.holders[at].running[0]),
            Step::GiveUp(at) => {
                state.given_up -= 1;
                state.holders[at].give_up(self);
            }
            Step::Late(at) => {
                state.given_up -= 1;
                state.holders[at].late(self);
            }
            Step::GiveBack(at) => state.holders[at].give_back(self),
            Step::End(at, nr) => state.end(self, at, nr),
            Step::Confirm(at, nr) => state.holders[at].confirm(self, nr),
            Step::Again(at, nr) => {
                state.losses -= 1;
                state.holders[at].sent[nr].is_done = false;
            }
            Step::Leave(at) => state.server.leave(self, state.holders[at].number),
            Step::Crash(at) => {
                state.crashes -= 1;
                state.holders[at].crash();
            }
        }
        (1..self.holders).for_each(|at| state.settle(self, at));
        let acks = |sent: &Sent| self.acks_at_once && sent.end == End::Ack;
        while let Some(nr) = state.holders[0].sent.iter().position(acks) {
            state.end(self, 0, nr);
        }
        (state != *last && state.is_within(self)).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_HOLDER, |_, state: &State| state.server.is_one_holders()),
            Property::always(ORDER, |_, state: &State| !state.overtook),
            Property::always(PER_KEY, |_, state: &State| !state.crowded),
            Property::always(FENCE, |_, state: &State| !state.server.usurped),
            Property::always(NOTHING_LOST, |_, state: &State| {
                let rows = state.server.rows.iter().zip(&state.handled);
                rows.into_iter().all(|(row, handled)| !row.gone || *handled)
            }),
            Property::sometimes("all are done", |_, state: &State| state.server.rows.iter().all(|row| row.gone)),
        ]
    }
}

const ONE_HOLDER: &str = "what is leased of a lane is one holder's, who holds the lane for as long";
const ORDER: &str = "no message begins before those ahead of it were handled";
const PER_KEY: &str = "no more of a key run at a time than may";
const FENCE: &str = "a late holder does not end another's lease";
const NOTHING_LOST: &str = "what is gone was handled";
