use super::lane::Lane;
use super::{Connection, DelayProxy, locked, within_bounds};
use crate::error::Result;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The interval between two checks whether a held connection has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The direction that [`DelayProxy::hold`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Holds nothing.
    Nothing,
    /// The server receives nothing more. Its answers are still delivered.
    Requests,
    /// The clients receive nothing more. Their requests are still delivered.
    Answers,
    /// Holds both directions.
    Both,
}

/// Faults of the connection, other than a cut.
impl DelayProxy {
    /// Sets the delay of bytes that arrive from now on, also in open connections. Bytes in transit
    /// keep their delay, and no byte overtakes another.
    ///
    /// Fails for a delay over one hour.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use trunkline_embedded::{DelayProxy, Upstream};
    /// # let server: Upstream = "127.0.0.1:5432".parse()?;
    /// let proxy = DelayProxy::start("127.0.0.1:0", server, Duration::ZERO)?;
    /// proxy.set_delay(Duration::from_millis(200))?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn set_delay(&self, delay: Duration) -> Result<()> {
        within_bounds(delay)?;
        self.shared.delay.store(delay.as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Holds bytes that are due from now on, in open and later connections. No byte is lost, and
    /// neither side sees an end, as on a dead line. The hold lasts until the next call; then the
    /// held bytes are delivered in order.
    ///
    /// ```
    /// # use std::{io::{ErrorKind, Read, Write}, net::{TcpListener, TcpStream}, time::Duration};
    /// # use trunkline_embedded::{DelayProxy, Hold};
    /// # let server = TcpListener::bind("127.0.0.1:0").unwrap();
    /// let proxy = DelayProxy::start("127.0.0.1:0", server.local_addr().unwrap(), Duration::ZERO)?;
    /// proxy.hold(Hold::Answers);
    /// let mut client = TcpStream::connect(proxy.addr()).unwrap();
    /// server.accept().unwrap().0.write_all(b"answer").unwrap();
    /// client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    /// assert!(client.read(&mut [0]).is_err(), "nothing comes");
    /// proxy.hold(Hold::Nothing);
    /// client.set_read_timeout(None).unwrap();
    /// let mut got = String::new();
    /// client.read_to_string(&mut got).unwrap();
    /// assert_eq!(got, "answer");
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn hold(&self, hold: Hold) {
        self.shared.requests_gate.set(matches!(hold, Hold::Requests | Hold::Both));
        self.shared.answers_gate.set(matches!(hold, Hold::Answers | Hold::Both));
    }

    /// Ends every connection at once, on both sides, including connections after
    /// [`DelayProxy::leave_half_open`]. Bytes in transit are discarded. Later connections are
    /// served.
    pub fn cut_all(&self) {
        self.connections().iter().for_each(|connection| connection.end());
    }

    /// Ends every connection on the clients' side only, as after the loss of a machine. The server
    /// receives neither an end nor another byte. It keeps its sessions, transactions and locks
    /// until [`DelayProxy::cut_all`] or the end of the proxy. Later connections are served.
    pub fn leave_half_open(&self) {
        for connection in self.connections() {
            connection.left.store(true, Ordering::Release);
            let _ = connection.client.shutdown(Shutdown::Both);
        }
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        locked(&self.shared.open).iter().flatten().filter_map(Weak::upgrade).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, shut: bool) {
        *locked(&self.shut) = shut;
        self.opened.notify_all();
    }

    /// Waits until the gate is open, or the lane is closed.
    pub(super) fn pass(&self, lane: &Lane) {
        let mut shut = locked(&self.shut);
        while *shut && !lane.is_closed() {
            shut = self.opened.wait_timeout(shut, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Cut(Mutex<Option<usize>>);

impl Cut {
    pub(super) fn set(&self, bytes: Option<usize>) {
        *locked(&self.0) = bytes;
    }

    pub(super) fn is_ahead(&self) -> bool {
        locked(&self.0).is_some()
    }

    /// Returns the number of bytes to deliver, and true if the connection is cut after these bytes.
    pub(super) fn passes(&self, bytes: usize) -> (usize, bool) {
        let mut left = locked(&self.0);
        match *left {
            Some(least) if least <= bytes => {
                *left = None;
                (least, true)
            }
            _ => {
                *left = left.map(|left| left - bytes);
                (bytes, false)
            }
        }
    }
}
