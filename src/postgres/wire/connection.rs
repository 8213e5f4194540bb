//! The callers' side of a connection. It prepares statements and queues groups.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tracing::{debug, warn};

use super::{
    CachedStatement, Descriptions, Group, Incoming, Prepared, ReplyMode, Use, WireError,
    bind::parse,
    cancel::CancelKey,
    connect::{Connected, connect},
    drive::drive,
    inbox::Inbox,
    queued::{AwaitedGroup, GroupWork, Link, Queued, To},
    socket::Socket,
};
use crate::{error::Result, postgres::target::Target};

/// The number of unwritten bytes above which callers wait, to limit the memory for statements.
const QUEUED: usize = 8 << 20;
/// The maximum number of statements that a connection keeps prepared.
const KEPT: usize = 1000;

/// The statements that reset session state which a user's statement may have changed. They also
/// restore the library's settings.
const CLEAN: &str = concat!(
    include_str!("../../../sql/statements/clean.sql"),
    ";\n",
    include_str!("../../../sql/statements/connect.sql")
);

/// A connection that many callers can share. Each caller sends its own groups.
pub(crate) struct Connection {
    pub(super) shared: Arc<Link>,
    /// The cached descriptions of statements, if this connection keeps no prepared statements.
    pub(super) unnamed: Option<Descriptions>,
    cancel: CancelKey,
}

impl Connection {
    /// Connects, without retries, and starts a task that runs the driver.
    pub async fn open(target: &Target, usage: Use) -> Result<Self> {
        let connected = connect(target).await?;
        let version = connected.parameters.get("server_version");
        debug!(process_id = connected.process_id, version, "connected");
        let (connection, driver) = Self::of(connected, target, usage);
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                warn!(%error, "connection to the database lost");
            }
        });
        Ok(connection)
    }

    /// Creates a connection and its driver. The caller must poll the driver.
    pub fn of(
        connected: Connected,
        target: &Target,
        usage: Use,
    ) -> (Self, impl Future<Output = std::io::Result<()>> + Send + use<>) {
        let (shared, cancel) = (Arc::new(Link::new(target.limits, usage)), CancelKey::of(&connected));
        shared.lock().socket = Socket::of(&connected.stream);
        let driver = drive(connected.stream, connected.read, shared.clone());
        let unnamed = (!target.keeps_statements).then(Descriptions::default);
        (Self { shared, unnamed, cancel }, driver)
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn over(shared: Arc<Link>) -> Self {
        Self { shared, unnamed: None, cancel: CancelKey::default() }
    }

    /// Returns the process that the other side named at the login. A pooler names none of the
    /// server.
    pub fn process_id(&self) -> i32 {
        self.cancel.process_id
    }

    /// Requests that the server cancel the running statement, if a reply is due.
    pub async fn cancel(&self, target: &Target) -> Result<()> {
        let is_due = !self.shared.lock().groups.is_empty();
        if is_due { self.cancel.request(target).await } else { Ok(()) }
    }

    /// Returns false if the server parses statements at each use, for a pooler in transaction mode.
    pub fn keeps_statements(&self) -> bool {
        self.unnamed.is_none()
    }

    pub fn is_closed(&self) -> bool {
        self.shared.lock().ended.is_some()
    }

    /// Returns the statement with this text, and prepares it if necessary.
    ///
    /// The Parse message is sent before the next group, in the same write, but with its own Sync.
    /// After an error in a group, the server skips the rest of that group, so a Parse that other
    /// groups need must not be part of it.
    pub fn name(&self, text: &str) -> Result<Arc<CachedStatement>, WireError> {
        let mut queued = self.shared.lock();
        match queued.named.get(text) {
            Some(named) if !named.is_outdated() => return Ok(named.clone()),
            Some(_) => queued.forget(text),
            None => {}
        }
        check(&queued)?;
        let named = Arc::new(CachedStatement::new(format!("t{}", queued.names + 1), text.into()));
        // Writes to a separate buffer first. A text that contains a NUL cannot be written, and no
        // partial message may remain in the shared buffer.
        let mut bytes = BytesMut::new();
        parse(&named.name, text, &[], &mut bytes)?;
        frontend::describe(b'S', &named.name, &mut bytes).map_err(WireError::encode)?;
        frontend::sync(&mut bytes);
        if queued.named.len() >= KEPT {
            forget_one(&mut queued);
        }
        close_unused(&mut queued)?;
        queued.names += 1;
        queued.out().extend_from_slice(&bytes);
        queued.groups.push_back(AwaitedGroup::new(To::CachedStatement(named.clone())));
        queued.named.insert(named.text.clone(), named.clone());
        drop(queued);
        self.shared.wake.notify_one();
        Ok(named)
    }

    /// Removes a statement from the cache because its table or type has changed. The next use
    /// prepares the statement again.
    pub fn forget(&self, text: &str) {
        self.shared.lock().forget(text);
        if let Some(unnamed) = &self.unnamed {
            unnamed.forget(text);
        }
    }

    /// Removes the failed statement from the cache if its table or type has changed.
    pub fn forget_outdated(&self, failure: &WireError) {
        if let WireError::Server { text: Some(text), .. } = failure
            && failure.may_be_of_types()
        {
            self.forget(text);
        }
    }

    /// Removes all prepared statements from the cache, after a statement that deallocated them.
    pub fn forget_all(&self) {
        self.shared.lock().named.clear();
    }

    /// Queues a group. The returned future waits for the reply. If the future is dropped, the group
    /// still runs.
    pub fn send(&self, mut group: Group) -> Incoming {
        if !group.script {
            frontend::sync(&mut group.bytes);
        }
        let work = if group.script || !group.is_empty() { GroupWork::Statements } else { GroupWork::Closes };
        let (places, script, mode) = (std::mem::take(&mut group.places), group.script, group.mode);
        let inbox = self.push(group, work).unwrap_or_else(Inbox::refused);
        Incoming::new(inbox, places, script, mode)
    }

    fn push(&self, mut group: Group, work: GroupWork) -> Result<Arc<Inbox>, WireError> {
        let (inbox, delivery) = Inbox::new();
        let mut waiting = AwaitedGroup::new(To::Caller(delivery));
        (waiting.copies, waiting.mode, waiting.work) = (group.copies, group.mode, work);
        (waiting.bound, waiting.load) = (group.bound, group.load.take());
        let mut queued = self.shared.lock();
        check(&queued)?;
        // If no group awaits a reply, all earlier groups have been written completely, because a
        // reply arrives only after the server has read the whole group. If the server's silence is
        // limited, the driver must write, because it measures the silence.
        if queued.groups.is_empty()
            && queued.bytes.is_empty()
            && self.shared.limits.answer.is_none()
            && let Some(socket) = &mut queued.socket
        {
            socket.write(&mut group.bytes);
        }
        let out = queued.out();
        match out.is_empty() {
            true => *out = group.bytes,
            false => out.extend_from_slice(&group.bytes),
        }
        queued.groups.push_back(waiting);
        queued.soiled |= group.soils;
        if self.shared.usage == Use::Common {
            self.clean_up(&mut queued)?; // adds the clean-up before any other caller can add a group
        }
        if !queued.bytes.is_empty() {
            drop(queued);
            self.shared.wake.notify_one();
        }
        Ok(inbox)
    }

    /// Queues a group whose reply is read in parts with [`Incoming::parts`].
    pub fn send_in_parts(&self, mut group: Group) -> Incoming {
        group.mode = ReplyMode::InParts;
        self.send(group)
    }

    /// Lets the driver read again, if it stopped because a stream was full.
    pub fn read_on(&self) {
        self.shared.read_on();
    }

    /// Resets the session state for the next user of the connection.
    pub fn clean(&self) {
        let mut queued = self.shared.lock();
        if queued.soiled {
            let _ = self.clean_up(&mut queued); // fails only if the connection has ended
            drop(queued);
            self.shared.wake.notify_one();
        }
    }

    fn clean_up(&self, queued: &mut Queued) -> Result<(), WireError> {
        // A connection without named statements may be behind a pooler in transaction mode. The
        // session then belongs to the pooler, and the next statement may run in a different one, so
        // cleaning it up would be pointless.
        if std::mem::take(&mut queued.soiled) && self.unnamed.is_none() {
            check(queued)?;
            frontend::query(CLEAN, queued.out()).map_err(WireError::encode)?;
            queued.groups.push_back(AwaitedGroup::new(To::NoCaller));
        }
        Ok(())
    }

    /// Waits until fewer than `QUEUED` bytes are queued, also behind an open copy.
    pub async fn room(&self) {
        self.room_for(|queued| {
            let behind = queued.behind_copy.as_ref().map_or(0, BytesMut::len);
            queued.bytes.len().max(behind)
        })
        .await;
    }

    /// Waits for room for the data of the open copy. The groups behind the copy do not count,
    /// because they wait for its end.
    pub async fn copy_room(&self) {
        self.room_for(|queued| queued.bytes.len()).await;
    }

    async fn room_for(&self, bytes: impl Fn(&Queued) -> usize) {
        let has_room = || {
            let queued = self.shared.lock();
            bytes(&queued) < QUEUED || queued.ended.is_some()
        };
        while !has_room() {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if has_room() {
                return;
            }
            room.await;
        }
    }

    /// Returns a statement that can be bound without a round trip, if it is cached.
    pub fn prepared(&self, text: &str) -> Option<Prepared> {
        if let Some(unnamed) = &self.unnamed {
            return unnamed.get(text).map(|(text, columns)| Prepared { text, named: None, columns });
        }
        let named = self.shared.lock().named.get(text)?.clone();
        let columns = named.typed.get().filter(|columns| !columns.is_outdated())?.clone();
        Some(Prepared { text: named.text.clone(), named: Some(named), columns })
    }

    /// Runs one statement. If the statement is cached, the first poll sends it.
    #[cfg(test)]
    pub async fn query(
        &self,
        text: &str,
        parameters: &[&(dyn postgres_types::ToSql + Sync)],
    ) -> Result<Vec<super::Row>, WireError> {
        let prepared = self.prepare(text).await?;
        let mut group = Group::new();
        group.push(&prepared, parameters)?;
        self.room().await;
        Ok(self.send(group).await?.rows(0, &prepared.columns))
    }

    /// Runs a text that contains several statements, without preparing them. The statements run in
    /// one transaction, unless they begin or end transactions themselves.
    pub async fn batch(&self, text: &str) -> Result<(), WireError> {
        let mut group = Group::new();
        group.script(text)?;
        self.send(group).await.map(drop)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.lock().leaving = true;
        self.shared.wake.notify_one();
    }
}

pub(super) fn check(queued: &Queued) -> Result<(), WireError> {
    match &queued.ended {
        None => Ok(()),
        Some(ended) => Err(WireError::Unsent(ended.0.clone())),
    }
}

/// Forgets an arbitrary statement that no caller and no group uses, if there is one. A program with
/// this many different texts probably writes values into them.
fn forget_one(queued: &mut Queued) {
    let unused = queued.named.iter().find(|(_, named)| Arc::strong_count(named) == 1);
    if let Some(text) = unused.map(|(text, _)| text.clone()) {
        queued.forget(&text);
    }
}

/// Closes the forgotten statements that no caller and no group uses any more.
fn close_unused(queued: &mut Queued) -> Result<(), WireError> {
    let unused: Vec<_> = queued.forgotten.extract_if(.., |named| Arc::strong_count(named) == 1).collect();
    for named in unused {
        frontend::close(b'S', &named.name, queued.out()).map_err(WireError::encode)?;
        frontend::sync(queued.out());
        queued.groups.push_back(AwaitedGroup::new(To::NoCaller));
    }
    Ok(())
}
