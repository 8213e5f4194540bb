//! The queued statements of a transaction, and the replies to the groups that were sent.

mod first_error;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sent::{GroupReply, Sent};
use crate::{
    error::{Error, Result},
    postgres::{
        db::{Session, told_to_user},
        rows::Rows,
        wire::{Columns, Group, ReplyMode, WireError},
    },
};

/// The number of queued bytes above which statements are sent even if no caller waits.
const GATHERED: usize = 32 << 10;

/// The state of a transaction, which its pending replies share.
pub(super) struct Pipeline {
    pub session: Arc<Session>,
    state: Mutex<PipelineState>,
}

#[derive(Default)]
struct PipelineState {
    begin: String,
    begun: bool,
    ended: bool,
    /// The group of queued statements. `opened` will receive its reply.
    open: Group,
    opened: Arc<Sent>,
    /// The groups that are not yet known to have succeeded, oldest first.
    sent: Vec<Arc<Sent>>,
    /// The number of the user's statements in this transaction so far.
    statements: usize,
    portals: u64,
    /// The group that contains the last rollback to a savepoint.
    back: Option<Arc<Sent>>,
    /// The error from a statement that could not be prepared.
    unprepared: Option<Error>,
    /// The error after which this transaction sends no more statements. Either the server has no
    /// open transaction, or the transaction must not be committed.
    failed: Option<Error>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pipeline").finish_non_exhaustive()
    }
}

impl Pipeline {
    fn state(&self) -> MutexGuard<'_, PipelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn new(session: Arc<Session>, begin: String) -> Self {
        Self { session, state: Mutex::new(PipelineState { begin, ..PipelineState::default() }) }
    }

    /// Adds a statement to the group of queued statements.
    pub fn push(
        &self,
        text: &str,
        add: impl FnOnce(&mut Group) -> std::result::Result<(), WireError>,
    ) -> Result<(Arc<Sent>, usize)> {
        let mut state = self.state();
        let place = state.add(text, add)?;
        let sent = state.opened.clone();
        if state.open.bytes() > GATHERED {
            self.send_open(&mut state);
        }
        Ok((sent, place))
    }

    /// Sends a statement in its own group, so that its rows can be read as they arrive. Earlier
    /// statements are sent first.
    pub fn push_streamed(
        &self,
        text: &str,
        add: impl FnOnce(&mut Group) -> std::result::Result<(), WireError>,
    ) -> Result<(Arc<Sent>, usize)> {
        // Holds the lock for the whole call, so that another task cannot add a statement to the
        // stream's group.
        let mut state = self.state();
        self.flush_open(&mut state);
        self.send_in(ReplyMode::Streamed, &mut state, text, add)
    }

    /// Sends a statement whose rows are read as they arrive. Returns `None` if other statements are
    /// queued, because all replies to a group must then be read together.
    pub fn push_alone(
        &self,
        text: &str,
        add: impl FnOnce(&mut Group) -> std::result::Result<(), WireError>,
    ) -> Result<Option<Arc<Sent>>> {
        let mut state = self.state();
        if !state.open.is_empty() {
            return Ok(None);
        }
        self.send_in(ReplyMode::InParts, &mut state, text, add).map(|(sent, _)| Some(sent))
    }

    /// Adds a statement to the group of queued statements, and sends the group. The reply arrives
    /// in the given mode.
    fn send_in(
        &self,
        mode: ReplyMode,
        state: &mut PipelineState,
        text: &str,
        add: impl FnOnce(&mut Group) -> std::result::Result<(), WireError>,
    ) -> Result<(Arc<Sent>, usize)> {
        let place = state.add(text, add)?;
        state.open.mode = mode;
        let sent = state.opened.clone();
        self.send_open(state);
        Ok((sent, place))
    }

    /// Returns an error if the transaction has ended or must not send further statements.
    pub fn check(&self) -> Result<()> {
        self.state().check()
    }

    pub fn is_quiet(&self) -> bool {
        let state = self.state();
        state.open.is_empty() && state.sent.iter().all(|sent| sent.seen().is_some())
    }

    pub fn flush(&self) {
        self.flush_open(&mut self.state());
    }

    fn flush_open(&self, state: &mut PipelineState) {
        if state.check().is_ok() && !state.open.is_empty() {
            self.send_open(state);
        }
    }

    fn send_open(&self, state: &mut PipelineState) {
        state.forget_good();
        let group = std::mem::take(&mut state.open);
        let sent = std::mem::take(&mut state.opened);
        sent.set(self.session.connection().send(group));
        state.begun = true;
        state.sent.push(sent);
    }

    /// Sends `begin` alone, and waits for the server's reply.
    pub async fn begin_now(&self) -> Result<()> {
        let sent = {
            let mut state = self.state();
            state.begin()?;
            let sent = state.opened.clone();
            self.send_open(&mut state);
            sent
        };
        match &*sent.answer().await {
            Ok(_) => Ok(()),
            Err(failure) => Err(self.error(&sent, failure)),
        }
    }

    /// Marks the transaction as failed, so that it sends no more statements and cannot be
    /// committed. Does nothing if the transaction has ended.
    pub fn fail(&self, error: Error) {
        let mut state = self.state();
        if !state.ended {
            state.failed.get_or_insert(error);
        }
    }

    /// Returns the error after which no more statements are sent. For example, if `begin` failed,
    /// later statements would run without a transaction.
    pub fn failure(&self) -> Option<Error> {
        let mut state = self.state();
        state.note_begin();
        state.failed.clone()
    }

    /// Ends the transaction with `commit` or `rollback`. Returns `None` if the server has no
    /// transaction to end.
    pub fn end(&self, with: &str) -> Result<Option<(Arc<Sent>, usize)>> {
        let mut state = self.state();
        if with == "commit" {
            state.check()?;
        }
        if with == "rollback" {
            state.open = Group::new(); // these statements were never sent
        }
        if !state.begun && state.open.is_empty() {
            state.ended = true;
            return Ok(None);
        }
        if with == "commit" {
            state.begin()?;
        } else {
            state.opened = Arc::new(Sent::new(state.statements, false));
        }
        let place = state.open.len();
        state.open.push_unnamed(&with.into(), &[], &[]).map_err(|failure| told_to_user(place, with, failure))?;
        let sent = state.opened.clone();
        self.send_open(&mut state);
        state.ended = true;
        Ok(Some((sent, place)))
    }

    /// Abandons the transaction without waiting. Returns true if no statement is running.
    pub fn abandon(&self) -> bool {
        {
            let mut state = self.state();
            if std::mem::replace(&mut state.ended, true) {
                return false; // already ended by a commit or rollback, which handles the connection
            }
            state.open = Group::new(); // these statements were never sent
        }
        let quiet = self.state().sent.iter().all(|sent| sent.seen().is_some());
        self.roll_back_unheard();
        quiet
    }

    pub fn portal(&self) -> String {
        let mut state = self.state();
        state.portals += 1;
        format!("s{}", state.portals)
    }

    /// Closes a portal, so that the server frees its remaining rows before the transaction ends.
    pub fn close(&self, portal: &str) {
        let mut state = self.state();
        if !state.ended && state.begun {
            let _ = state.open.close(portal); // cannot fail, because the name contains no NUL
        }
    }

    /// Records that a statement could not be prepared. If the transaction has begun, the server has
    /// aborted it. If it has not begun, no more statements are sent. If the library rejected the
    /// statement itself, the transaction is unchanged.
    pub fn not_prepared(&self, text: &str, failure: WireError) -> Error {
        let was_sent = !matches!(failure, WireError::Encode(_));
        self.state().forget_good();
        let earlier = self.first_error();
        let mut state = self.state();
        let error = earlier.unwrap_or_else(|| told_to_user(state.statements, text, failure.of_statement(0, text)));
        if was_sent && state.begun {
            state.unprepared.get_or_insert_with(|| error.clone());
        } else if was_sent {
            state.failed.get_or_insert_with(|| error.clone());
        }
        error
    }

    /// Sends a rollback without waiting for its reply. Later groups run after the rollback.
    pub fn roll_back_unheard(&self) {
        if self.state().begun {
            drop(self.session.connection().send(rollback()));
        }
    }

    pub fn error(&self, sent: &Sent, failure: &WireError) -> Error {
        self.session.connection().forget_outdated(failure); // makes the next transaction prepare the statement again
        self.session.demote_after(failure);
        sent.error(failure)
    }

    pub fn outcome<R: Rows>(
        &self,
        sent: &Sent,
        outcome: &GroupReply,
        place: usize,
        text: &str,
        columns: &Arc<Columns>,
    ) -> Result<R> {
        match &**outcome {
            Ok(answer) => crate::postgres::run::read(answer, place, columns, text),
            Err(failure) => Err(self.cause(sent, failure)),
        }
    }
}

impl PipelineState {
    fn check(&mut self) -> Result<()> {
        self.note_begin();
        match &self.failed {
            _ if self.ended => Err(Error::invalid("the transaction has ended; begin another")),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Marks the transaction as failed if `begin` is known to have failed.
    fn note_begin(&mut self) {
        if self.failed.is_none() {
            self.failed = self.sent.iter().find_map(|sent| sent.begin_error());
        }
    }

    /// Adds a statement to the group of queued statements, and returns its index in the group.
    fn add(&mut self, text: &str, add: impl FnOnce(&mut Group) -> std::result::Result<(), WireError>) -> Result<usize> {
        self.check()?;
        self.begin()?;
        let place = self.open.len();
        add(&mut self.open).map_err(|failure| told_to_user(self.statements, text, failure))?;
        self.statements += 1;
        self.note_way_back(text);
        Ok(place)
    }

    /// Starts a new group if none is open. The first group begins with `begin`, which does not
    /// count as one of the user's statements. A group that is sent before the reply to `begin`
    /// starts with a check that the transaction is open. If `begin` failed, the server would
    /// otherwise commit that group by itself.
    fn begin(&mut self) -> Result<()> {
        if !self.open.is_empty() {
            return Ok(());
        }
        self.opened = Arc::new(Sent::new(self.statements, !self.begun));
        let started = if !self.begun {
            self.open.push_begin(&self.begin.as_str().into())
        } else if self.sent.first().is_some_and(|sent| sent.awaits_begin()) {
            self.open.expect_begun()
        } else {
            Ok(())
        };
        started.map_err(|failure| told_to_user(0, "begin", failure))
    }

    /// Forgets the last successful group and all groups before it. If an earlier group failed, the
    /// transaction has since been rolled back to a savepoint.
    fn forget_good(&mut self) {
        self.note_begin();
        if let Some(good) = self.sent.iter().rposition(|sent| sent.seen().is_some_and(|outcome| outcome.is_ok())) {
            self.sent.drain(..=good);
            self.unprepared = None;
        }
    }
}

fn rollback() -> Group {
    let mut group = Group::new();
    let text: Arc<str> = "rollback".into();
    let _ = group.push_unnamed(&text, &[], &[]);
    group
}
