//! A set of stripes: the servers that hold queues of the same names.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;

use crate::{
    error::{Error, Result},
    postgres::{db::Db, target::Target},
    queue::admin::settings::Settings,
    stripes::{
        health::Fitness,
        id::StripeId,
        reach::{Place, Set},
        stripe::Stripe,
    },
};

/// Several PostgreSQL servers that share nothing and hold queues of the same names: each queue is
/// one over all of them. Cheap to clone.
///
/// Begin with [`Stripes::queue`]. The guide has a chapter on what stripes promise, and what they do
/// not.
#[derive(Clone)]
pub struct Stripes(pub(super) Arc<Set>);

/// A stripe, or the place of one that was not reached yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StripeState {
    /// Its name; none where it was not reached since this process began.
    pub id: Option<StripeId>,
    /// Its address, without anything that is secret.
    pub place: String,
    /// What is enqueued goes elsewhere, and it is left when it is empty.
    pub drains: bool,
    /// Why it is not reached at present; none where it is, as far as is known.
    pub away: Option<Error>,
}

impl fmt::Debug for Stripes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.places().iter().map(|place| place.shown())).finish()
    }
}

impl Db {
    /// Connects to several servers that hold queues of the same names, each by a connection string
    /// as in [`Db::connect`]. The order of the strings does not matter: the name of a stripe is in
    /// its database ([`StripeId`]).
    ///
    /// Servers that cannot be reached now are looked for every second, and take part when they are
    /// there. A host has two seconds unless `connect_timeout` says otherwise.
    ///
    /// ```no_run
    /// # use trunkline::{Db, Result, StripedQueue};
    /// # async fn example() -> Result<()> {
    /// let stripes = Db::connect_striped(["postgres://db1/app", "postgres://db2/app", "postgres://db3/app"]).await?;
    /// let mails: StripedQueue<String> = stripes.queue("mails").await?;
    /// let id = mails.enqueue("ada@example.org: hello".to_owned()).await?;
    /// println!("{id}"); // 1f3a9c02:1024
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None of the servers was reached, or there are none. What does not pass by waiting ends the
    /// call even for one of them: a string that is not valid, a login that is refused, a schema of
    /// another version, a server that is named twice.
    pub async fn connect_striped<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Stripes> {
        let targets: Result<Vec<Target>> = urls.into_iter().map(|url| Target::parse(url.as_ref())).collect();
        Stripes::to(targets?).await
    }

    /// As [`Db::connect_striped`], in another environment, as [`Db::connect_with`].
    ///
    /// # Errors
    /// As those of [`Db::connect_striped`].
    pub async fn connect_striped_with<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Stripes> {
        let target = |url: U| Target::parse_in(url.as_ref(), &environment);
        let targets: Result<Vec<Target>> = urls.into_iter().map(target).collect();
        Stripes::to(targets?).await
    }
}

impl Stripes {
    async fn to(targets: Vec<Target>) -> Result<Self> {
        let set = Arc::new(Set::new());
        let places: Vec<Arc<Place>> = targets.into_iter().map(Place::new).collect();
        let tried = join_all(places.iter().map(|place| set.reach(place))).await;
        places.iter().cloned().for_each(|place| set.add(place));
        let failed = places.iter().zip(tried).filter_map(|(place, tried)| Some((place.shown(), tried.err()?)));
        let failed: Vec<(String, Error)> = failed.collect();
        let is_hopeless = failed.iter().any(|(_, error)| error.is_final()) || failed.len() == places.len();
        if is_hopeless {
            return Err(Error::of_stripes(failed));
        }
        set.seek();
        Ok(Self(set))
    }

    /// A server more, at once: open queues, consumers and workers take it in within a second. Its
    /// schema must be there, and its queues.
    ///
    /// # Errors
    /// As those of [`Db::connect_striped`] that do not pass by waiting. One that cannot be reached
    /// now is looked for, and that is no error.
    pub async fn add(&self, url: &str) -> Result<()> {
        let place = Place::new(Target::parse(url)?);
        match self.0.reach(&place).await {
            Err(error) if error.is_final() => return Err(Error::of_stripes(vec![(place.shown(), error)])),
            _ => self.0.add(place),
        }
        self.0.seek();
        Ok(())
    }

    /// All of them, in the order in which they were named.
    #[must_use]
    pub fn list(&self) -> Vec<StripeState> {
        let state = |place: &Arc<Place>| {
            let stripe = place.stripe();
            let drains =
                stripe.is_some_and(|stripe| stripe.health.fitness(std::time::Instant::now()) >= Fitness::Drains);
            let away = stripe.map_or_else(|| place.error(), |stripe| stripe.health.error());
            StripeState {
                id: stripe.map(|stripe| stripe.id),
                place: place.shown(),
                drains: drains && away.is_none(),
                away,
            }
        };
        self.0.places().iter().map(state).collect()
    }

    /// The database of a stripe that was reached: for transactions, and for what is about one
    /// server.
    #[must_use]
    pub fn db(&self, stripe: StripeId) -> Option<Db> {
        self.find(stripe).map(|stripe| stripe.db.clone())
    }

    pub(super) fn find(&self, id: StripeId) -> Option<Arc<Stripe>> {
        self.0.reached.borrow().iter().find(|stripe| stripe.id == id).cloned()
    }

    /// One that was reached.
    pub(super) fn known(&self, id: StripeId) -> Result<Arc<Stripe>> {
        self.find(id).ok_or_else(|| unknown(id))
    }

    /// Creates a queue on every server; does nothing where it exists with the same settings.
    ///
    /// # Errors
    /// As those of [`Db::create_queue`]; and a server was not reached: call again when it is there.
    pub async fn create_queue(&self, name: &str, settings: &Settings) -> Result<()> {
        let reached = self.0.reached.borrow().clone();
        let created = join_all(reached.iter().map(|stripe| stripe.db.create_queue(name, settings))).await;
        let failed =
            reached.iter().zip(created).filter_map(|(stripe, tried)| Some((stripe.id.to_string(), tried.err()?)));
        let places = self.0.places();
        let unreached = places.iter().filter(|place| place.stripe().is_none());
        let unreached = unreached.filter_map(|place| Some((place.shown(), place.error()?)));
        let failed: Vec<(String, Error)> = failed.chain(unreached).collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::of_stripes(failed)) }
    }
}

/// An id or a message names a stripe that is none of these.
pub(super) fn unknown(stripe: StripeId) -> Error {
    let told = "it is none of those that were reached; connect to its server, too, or wait until that is there";
    Error::of_stripes(vec![(stripe.to_string(), Error::invalid(told))])
}
