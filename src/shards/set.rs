//! A set of shards: the servers that have queues of the same names.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;
use tracing::warn;

use crate::{
    error::{Error, Result},
    postgres::{db::Db, target::Target},
    queue::admin::settings::Settings,
    shards::{
        health::Fitness,
        id::Id,
        reach::{Server, Servers},
        shard::Shard,
    },
};

/// Several PostgreSQL servers that share nothing and have queues of the same names. Each queue
/// spans all of them. Cheap to clone.
///
/// Begin with [`Set::connect`] and [`Set::queue`]. The guide has a chapter about the guarantees and
/// the limits of shards.
#[derive(Clone)]
pub struct Set(pub(super) Arc<Servers>);

/// The state of a shard, or of a server that has not been reached yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct State {
    /// The shard's name; `None` if this process has never reached it.
    pub id: Option<Id>,
    /// The server's address, without secrets.
    pub server: String,
    /// True if the shard is draining: enqueues use other shards, and the shard can be removed once
    /// it is empty.
    pub drains: bool,
    /// The reason why the server is down; `None` if this process considers it up.
    pub down: Option<Error>,
}

impl fmt::Debug for Set {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.places().iter().map(|place| place.shown())).finish()
    }
}

impl Set {
    /// Connects to several servers that have queues of the same names. Each connection string is
    /// one that [`Db::connect`] accepts. The order of the strings does not matter: each database
    /// contains the name of its shard ([`Id`]).
    ///
    /// Servers that cannot be reached now are tried every second, and join once they answer. The
    /// timeout for a host is two seconds, unless `connect_timeout` sets another.
    ///
    /// ```no_run
    /// # use trunkline::{Result, shards};
    /// # async fn example() -> Result<()> {
    /// let servers = ["postgres://db1/app", "postgres://db2/app", "postgres://db3/app"];
    /// let set = shards::Set::connect(servers).await?;
    /// let mails: shards::Queue<String> = set.queue("mails").await?;
    /// let enqueued = mails.enqueue("ada@example.org: hello".to_owned()).await?;
    /// println!("{}", enqueued.id()); // 1f3a9c02:1024
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No server was given, or none was reached. A permanent error of a single server also ends the
    /// call: an invalid connection string, a refused login, a schema of another version, or a
    /// server that is given twice.
    pub async fn connect<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Self> {
        let targets: Result<Vec<Target>> = urls.into_iter().map(|url| Target::parse(url.as_ref())).collect();
        Self::to(targets?).await
    }

    async fn to(targets: Vec<Target>) -> Result<Self> {
        let set = Arc::new(Servers::new());
        let places: Vec<Arc<Server>> = targets.into_iter().map(Server::new).collect();
        let tried = join_all(places.iter().map(|place| set.reach(place))).await;
        places.iter().cloned().for_each(|place| set.add(place));
        let failed = places.iter().zip(tried).filter_map(|(place, tried)| Some((place.shown(), tried.err()?)));
        let failed: Vec<(String, Error)> = failed.collect();
        let is_hopeless = failed.iter().any(|(_, error)| error.is_final()) || failed.len() == places.len();
        if is_hopeless {
            return Err(Error::of_shards(failed));
        }
        for (place, error) in failed {
            not_reached(&place, &error);
        }
        set.seek();
        Ok(Self(set))
    }

    /// Adds a server while the program runs: open queues, consumers and workers use it within a
    /// second. Its schema and its queues must already exist.
    ///
    /// # Errors
    /// The permanent errors of [`Set::connect`]. A server that cannot be reached now is not an
    /// error: it is tried again later.
    pub async fn add(&self, url: &str) -> Result<()> {
        let place = Server::new(Target::parse(url)?);
        match self.0.reach(&place).await {
            Err(error) if error.is_final() => return Err(Error::of_shards(vec![(place.shown(), error)])),
            Err(error) => not_reached(&place.shown(), &error),
            Ok(()) => {}
        }
        self.0.add(place);
        self.0.seek();
        Ok(())
    }

    /// Returns the state of all servers, in the order in which they were given.
    #[must_use]
    pub fn list(&self) -> Vec<State> {
        let state = |place: &Arc<Server>| {
            let shard = place.shard();
            let drains = shard.is_some_and(|shard| shard.health.fitness(std::time::Instant::now()) >= Fitness::Drains);
            let down = shard.map_or_else(|| place.error(), |shard| shard.health.error());
            State { id: shard.map(|shard| shard.id), server: place.shown(), drains: drains && down.is_none(), down }
        };
        self.0.places().iter().map(state).collect()
    }

    /// Returns the database of a shard that has been reached, for transactions and administration
    /// on that server.
    #[must_use]
    pub fn db(&self, shard: Id) -> Option<Db> {
        self.find(shard).map(|shard| shard.db.clone())
    }

    pub(super) fn find(&self, id: Id) -> Option<Arc<Shard>> {
        self.0.reached.borrow().iter().find(|shard| shard.id == id).cloned()
    }

    /// Returns a shard that has been reached.
    pub(super) fn known(&self, id: Id) -> Result<Arc<Shard>> {
        self.find(id).ok_or_else(|| unknown(id))
    }

    /// Creates a queue on every server. Does nothing on servers where the queue exists with the
    /// same settings.
    ///
    /// # Errors
    /// The errors of [`Db::create_queue`]. If a server could not be reached, call this method again
    /// when the server is up.
    pub async fn create_queue(&self, name: &str, settings: &Settings) -> Result<()> {
        let reached = self.0.reached.borrow().clone();
        let created = join_all(reached.iter().map(|shard| shard.db.create_queue(name, settings))).await;
        let failed =
            reached.iter().zip(created).filter_map(|(shard, tried)| Some((shard.id.to_string(), tried.err()?)));
        let places = self.0.places();
        let unreached = places.iter().filter(|place| place.shard().is_none());
        let unreached = unreached.filter_map(|place| Some((place.shown(), place.error()?)));
        let failed: Vec<(String, Error)> = failed.chain(unreached).collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::of_shards(failed)) }
    }
}

/// Warns of a server without which the program begins its work.
fn not_reached(place: &str, error: &Error) {
    warn!(place, %error, "cannot reach a shard; trying again");
}

/// Returns the error for an id or a message that names an unknown shard.
pub(super) fn unknown(shard: Id) -> Error {
    let told = "it is not one of the reached shards; connect to its server as well, or wait until that server is up";
    Error::of_shards(vec![(shard.to_string(), Error::invalid(told))])
}
