//! The driver of a connection: a task that writes queued groups and distributes their replies.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, BufMut, BytesMut};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use super::{
    ReplyMode, Use, WireError,
    cached_statement::Signature,
    frame::{SHORTEST, frames, length},
    queued::{AwaitedGroup, Link, To, Why},
};
use crate::error::{of_silence, server::ServerError};

/// The number of bytes by which the read buffer grows. It grows when less than a sixteenth of this
/// number is free.
const READ: usize = 64 << 10;
/// The size of the server's send buffer in bytes.
const SENT: usize = 8 << 10;
/// The maximum length of an accepted message in bytes. PostgreSQL's own limit is slightly lower.
const LONGEST: usize = 1 << 30;

/// Writes queued groups and distributes their replies, until the connection ends or its last caller
/// is gone.
pub(super) fn drive<S: AsyncRead + AsyncWrite>(
    io: S,
    read: BytesMut,
    shared: Arc<Link>,
) -> impl Future<Output = io::Result<()>> {
    // Creates this guard before the task runs, because a runtime that shuts down drops tasks
    // without ever running them.
    let ended = EndOfDriver { shared: shared.clone(), why: None, silence: None, left_open: None };
    run(io, read, shared, ended)
}

async fn run<S: AsyncRead + AsyncWrite>(
    io: S,
    read: BytesMut,
    shared: Arc<Link>,
    mut ended: EndOfDriver,
) -> io::Result<()> {
    let mut silence = Silence { limit: shared.limits.answer, until: None };
    let (mut from, mut to) = tokio::io::split(io);
    let (mut reader, mut write, mut unflushed) =
        (Reader { read, whole: 0, may_be_full: false }, BytesMut::new(), false);
    reader.hand_out(&shared, &mut ended)?;
    reader.make_room();
    loop {
        let mut leaving = false;
        if write.is_empty() {
            let mut queued = shared.lock();
            std::mem::swap(&mut write, &mut queued.bytes);
            leaving = queued.leaving && queued.groups.is_empty() && write.is_empty();
        }
        let is_held = reader.may_be_full && shared.lock().hold(shared.limits.answer_bytes);
        reader.may_be_full &= is_held;
        silence.expect(&shared, is_held, write.is_empty() && !unflushed);
        if !write.is_empty() {
            shared.room.notify_waiters();
        }
        if leaving {
            frontend::terminate(&mut write);
            to.write_all(&write).await?;
            return to.shutdown().await;
        }
        // Reads and writes at the same time. These futures may be dropped before they complete.
        tokio::select! {
            count = read_part(&mut from, &mut reader.read), if !is_held => {
                if count? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                silence.until = None;
                reader.hand_out(&shared, &mut ended)?;
                reader.make_room();
            }
            () = silence.lasts(), if silence.until.is_some() => {
                ended.silence = silence.limit;
                return Err(silence.error());
            }
            written = push_out(&mut to, &mut write, &mut unflushed), if unflushed || !write.is_empty() => {
                written?;
                silence.wrote(&shared);
            }
            () = shared.wake.notified(), if is_held || write.is_empty() => {}
        }
    }
}

/// Reads at most `SENT` bytes, which is as much as the server sends at once. If the read fills this
/// space, the next read starts immediately. With more space, the runtime would wait for a readiness
/// event after every 8 KiB.
async fn read_part(from: &mut (impl AsyncRead + Unpin), read: &mut BytesMut) -> io::Result<usize> {
    from.read_buf(&mut read.limit(SENT)).await
}

/// Writes some of the bytes. If none are left, flushes, because TLS may hold back a record.
async fn push_out(to: &mut (impl AsyncWrite + Unpin), write: &mut BytesMut, unflushed: &mut bool) -> io::Result<()> {
    if write.has_remaining() {
        *unflushed = true;
        to.write_buf(write).await?;
    } else {
        to.flush().await?;
        *unflushed = false;
    }
    Ok(())
}

/// The limit on the time that a server may be silent while a reply is due.
struct Silence {
    limit: Option<Duration>,
    until: Option<Instant>,
}

impl Silence {
    /// Starts or stops the clock. The server may be silent while it waits for the data of a copy.
    fn expect(&mut self, shared: &Link, is_held: bool, is_all_written: bool) {
        let Some(limit) = self.limit else { return };
        let queued = shared.lock();
        match is_held || queued.groups.is_empty() || is_all_written && queued.awaits_data() {
            true => self.until = None,
            false => drop(self.until.get_or_insert_with(|| Instant::now() + limit)),
        }
    }

    /// Starts the clock again if the server has accepted a part of the data of a copy.
    fn wrote(&mut self, shared: &Link) {
        if self.until.is_some() && shared.lock().awaits_data() {
            self.until = None;
        }
    }

    async fn lasts(&self) {
        if let Some(until) = self.until {
            tokio::time::sleep_until(until.into()).await;
        }
    }

    fn error(&self) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, of_silence(self.limit.unwrap_or_default()))
    }
}

/// Bytes that have been read but not distributed.
struct Reader {
    read: BytesMut,
    /// The number of bytes at the start that are complete messages for the first waiting group.
    whole: usize,
    /// True if stream rows have arrived since the driver last checked whether the stream is full.
    may_be_full: bool,
}

impl Reader {
    fn make_room(&mut self) {
        if self.read.capacity() - self.read.len() < READ / 16 {
            self.read.reserve(READ);
        }
    }

    /// Passes complete messages to the groups that wait for them.
    fn hand_out(&mut self, shared: &Link, ended: &mut EndOfDriver) -> io::Result<()> {
        while let Some(length) = length(&self.read[self.whole..]) {
            if !(SHORTEST..=LONGEST).contains(&length) {
                return Err(unexpected("a message of an impossible length"));
            }
            if self.read.len() < self.whole + length {
                self.read.reserve(self.whole + length - self.read.len());
                break;
            }
            match self.read[self.whole] {
                b'Z' => {
                    let idle = self.read.get(self.whole + SHORTEST) == Some(&b'I');
                    self.whole += length;
                    self.keep(shared, ended)?;
                    let waiting = shared.lock().groups.pop_front();
                    let waiting = waiting.ok_or_else(|| unexpected("an answer that no call waits for"))?;
                    if !idle && shared.usage == Use::Common {
                        // Ends the connection. Otherwise the next group would join the open
                        // transaction, and would be lost with it.
                        ended.left_open = Some(waiting);
                        return Err(unexpected("a transaction was left open"));
                    }
                    answer(waiting, shared)?;
                }
                b'A' | b'N' | b'S' => {
                    // Sets aside asynchronous messages, which may arrive within a reply but are not
                    // part of it.
                    self.keep(shared, ended)?;
                    let aside = self.read.split_to(length);
                    if let Some(asides) = &mut shared.lock().asides {
                        asides.push_back((aside[0], aside.freeze().split_off(SHORTEST)));
                    } else if aside[0] == b'N' {
                        debug!(notice = %ServerError::parse(&aside[5..]), "the server's notice");
                    }
                }
                b'G' if !shared.lock().groups.front().is_some_and(|waiting| waiting.copies) => {
                    // Ends the connection. The statement was a `COPY FROM STDIN` whose caller has
                    // no data, for which the server would wait forever.
                    return Err(unexpected("a copy that no call sends"));
                }
                kind => {
                    match kind {
                        b'E' => ended.hear(&self.read[self.whole + SHORTEST..self.whole + length]),
                        b'G' => {
                            if let Some(copy) = shared.lock().groups.front_mut() {
                                copy.is_asked = true;
                            }
                        }
                        _ => {}
                    }
                    self.whole += length;
                }
            }
        }
        self.keep(shared, ended)
    }

    /// Passes the complete messages to the first waiting group, without copying them.
    fn keep(&mut self, shared: &Link, ended: &EndOfDriver) -> io::Result<()> {
        if self.whole == 0 {
            return Ok(());
        }
        let chunk = self.read.split_to(std::mem::take(&mut self.whole)).freeze();
        let mut queued = shared.lock();
        match queued.groups.front_mut() {
            Some(waiting) => {
                self.may_be_full |= waiting.mode == ReplyMode::Streamed;
                waiting.keep(chunk, shared.limits.answer_bytes)?;
            }
            None if ended.why.is_some() => {}
            None => return Err(unexpected("a message that answers nothing")),
        }
        Ok(())
    }
}

fn unexpected(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn answer(waiting: AwaitedGroup, shared: &Link) -> io::Result<()> {
    let (came, to) = waiting.answered();
    match to {
        To::Caller(delivery) => delivery.end(Ok(came)),
        To::NoCaller if came.chunks.iter().flat_map(|chunk| frames(chunk)).any(|(kind, _)| kind == b'E') => {
            return Err(unexpected("a session that cannot be cleaned up"));
        }
        To::NoCaller => {}
        To::CachedStatement(named) => {
            let outcome = Signature::read(&came.chunks);
            if outcome.is_err() {
                let mut queued = shared.lock();
                // Keeps a newer statement of the same text, whose Parse was sent after this one.
                if queued.named.get(&named.text).is_some_and(|kept| Arc::ptr_eq(kept, &named)) {
                    queued.named.remove(&named.text);
                }
            }
            named.answered(outcome.map(Arc::new));
        }
    }
    Ok(())
}

/// A guard that reports an error to every waiting caller when the driver ends for any reason.
struct EndOfDriver {
    shared: Arc<Link>,
    why: Option<Arc<ServerError>>,
    /// The time for which the server was silent, if that ended the connection.
    silence: Option<Duration>,
    /// The group that left a transaction open and thereby ended the connection. Its caller receives
    /// the error only after the connection accepts no more groups.
    left_open: Option<AwaitedGroup>,
}

impl EndOfDriver {
    /// Stores the server's last error before a shutdown, for the waiting callers.
    fn hear(&mut self, error: &[u8]) {
        let error = ServerError::parse(error);
        if error.is_fatal() {
            self.why = Some(Arc::new(error));
        }
    }
}

impl Drop for EndOfDriver {
    fn drop(&mut self) {
        let groups = {
            let mut queued = self.shared.lock();
            queued.ended = Some(Why(self.why.clone()));
            (queued.bytes, queued.behind_copy) = (BytesMut::new(), None);
            queued.socket = None; // lets the server see that the connection has closed
            queued.named.clear();
            std::mem::take(&mut queued.groups)
        };
        let left_open = self.left_open.take().map(|waiting| (waiting, WireError::LeftOpen));
        let failure = match self.silence {
            Some(limit) => WireError::Silent { limit, sent: true },
            None => WireError::Lost(self.why.clone()),
        };
        let lost = groups.into_iter().map(|waiting| (waiting, failure.clone()));
        for (waiting, failure) in left_open.into_iter().chain(lost) {
            match waiting.answered().1 {
                To::Caller(delivery) => delivery.end(Err(failure)),
                To::CachedStatement(named) => named.answered(Err(failure)),
                To::NoCaller => {}
            }
        }
        self.shared.room.notify_waiters();
    }
}
