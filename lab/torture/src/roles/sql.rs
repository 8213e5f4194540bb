//! Acts like a program in another language: it calls the SQL functions through a driver that knows
//! nothing about queues.

mod lanes;
mod session;

use std::time::Duration;

use self::session::Session;
use super::user::User;
use crate::{
    history::{Call, Got, Named, Said, Verb},
    plan::{self, LEASE},
    random::Random,
    tag,
};

const LEASE_MS: u64 = LEASE.as_millis() as u64;

pub async fn run(user: User) -> Result<(), String> {
    let mut tasks = tokio::task::JoinSet::new();
    for name in
        [plan::LEAST, plan::LEAST, plan::EXACT, plan::ONCE, plan::CAPPED, plan::METERED, plan::KEYED, plan::UNIQUE]
    {
        let (user, random) = (user.clone(), user.random());
        tasks.spawn(async move { Client { session: Session::new(user.clone()), user, name, random }.work().await });
    }
    let (user, random) = (user.clone(), user.random());
    tasks.spawn(async move {
        Client { session: Session::new(user.clone()), user, name: plan::LEAST, random }.operate().await;
    });
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a task ended: {error}"))?;
    }
    Ok(())
}

struct Client {
    user: User,
    session: Session,
    name: &'static str,
    random: Random,
}

impl Client {
    async fn work(mut self) {
        while !self.user.is_stopped() {
            match (self.random.below(100), self.name) {
                (0..30, name) if !matches!(name, plan::CAPPED | plan::METERED) => self.enqueue().await,
                (_, plan::KEYED) => self.lane().await,
                (_, plan::EXACT) => self.take_in().await,
                (_, plan::ONCE | plan::METERED) => self.take().await,
                _ => self.lease().await,
            }
            let pause = Duration::from_millis(self.random.within(10, 90));
            self.user.rest(pause).await;
        }
    }

    async fn enqueue(&mut self) {
        if self.name == plan::UNIQUE {
            return self.enqueue_unique().await;
        }
        let (tags, delay) =
            (self.user.tags(self.random.within(1, 12)), self.random.below(2) * self.random.below(plan::DELAY_MS));
        let op = self.user.invoked(Call::new(Verb::Enqueue, self.name).tags(tags.clone()).ms(delay));
        let payloads: Vec<String> = tags.iter().map(|tag| tag::payload(*tag)).collect();
        let beside = |tag: &u64| tag::beside(*tag).map(|text| format!("{{\"{}\": \"{text}\"}}", tag::BESIDE));
        let metadata: Vec<Option<String>> = tags.iter().map(beside).collect();
        let rows = if let [payload] = &*payloads {
            let text = "select trunkline.enqueue($1, $2::text, $3 * interval '1 ms', $4::text::jsonb, key => $5)";
            let key = (self.name == plan::KEYED).then(|| tag::key(tags[0]));
            self.session.rows(text, &[&self.name, payload, &(delay as f64), &metadata[0], &key]).await
        } else if self.name == plan::KEYED {
            let keys: Vec<String> = tags.iter().map(|tag| tag::key(*tag)).collect();
            let text = "select * from trunkline.enqueue_many($1, $2::text[], $3 * interval '1 ms', $4::text[]::jsonb[], keys => $5)";
            self.session.rows(text, &[&self.name, &payloads, &(delay as f64), &metadata, &keys]).await
        } else {
            let text =
                "select * from trunkline.enqueue_many($1, $2::text[], $3 * interval '1 ms', $4::text[]::jsonb[])";
            self.session.rows(text, &[&self.name, &payloads, &(delay as f64), &metadata]).await
        };
        self.user.say(op, rows.map_or_else(|said| said, |rows| Said::ids(rows.iter().map(|row| row.get(0)).collect())));
    }

    async fn enqueue_unique(&mut self) {
        let (tag, replaces) = (self.user.tag(), self.random.chance(30));
        let verb = if replaces { Verb::Replace } else { Verb::EnqueueUnique };
        let op = self.user.invoked(Call::new(verb, self.name).tags(vec![tag]));
        let text = "select id, outcome from trunkline.enqueue_unique($1, $2::text, $3, replace => $4, metadata => $5::text::jsonb)";
        let beside = tag::beside(tag).map(|text| format!("{{\"{}\": \"{text}\"}}", tag::BESIDE));
        let (payload, key) = (tag::payload(tag), tag::unique(tag));
        let rows = self.session.rows(text, &[&self.name, &payload, &key, &replaces, &beside]).await;
        let said = |rows: Vec<tokio_postgres::Row>| match rows.first().map(|row| (row.get(0), row.get(1))) {
            Some((id, "new")) => Said::ids(vec![id]),
            Some((id, "replaced")) => Said::Replaced(id),
            Some((id, _)) => Said::Held(id),
            None => Said::Unknown("no row".to_owned()),
        };
        self.user.say(op, rows.map_or_else(|said| said, said));
    }

    async fn take(&mut self) {
        let n = self.random.within(1, 20) as usize;
        let op = self.user.invoked(Call::new(Verb::Take, self.name).n(n));
        let text = "select id, attempt, payload, metadata ->> 'tag' from trunkline.take($1, $2, $3 * interval '1 ms')";
        let wait = (self.random.below(2) * 200) as f64;
        let rows = self.session.rows(text, &[&self.name, &(n as i32), &wait]).await;
        self.user.say(op, rows.map_or_else(|said| said, |rows| Said::got(rows.iter().map(delivered).collect())));
    }

    async fn lease(&mut self) {
        let n = self.random.within(1, 20) as usize;
        let op = self.user.invoked(Call::new(Verb::Lease, self.name).n(n).ms(LEASE_MS));
        let text = "select id, attempt, payload, metadata ->> 'tag' from trunkline.lease($1, $2, $3 * interval '1 ms', $4 * interval '1 ms')";
        let wait = (self.random.below(2) * 200) as f64;
        let rows = self.session.rows(text, &[&self.name, &(n as i32), &(LEASE_MS as f64), &wait]).await;
        let got: Vec<Got> = rows.as_deref().unwrap_or_default().iter().map(delivered).collect();
        self.user.say(op, rows.map_or_else(|said| said, |_| Said::got(got.clone())));
        let leases: Vec<Named> = got.iter().map(|(id, attempt, _)| (*id, *attempt)).collect();
        for leases in leases.chunks(self.random.within(1, 20) as usize) {
            self.end(leases).await;
        }
    }

    /// Ends leases. A call with several messages ends either all of them or none.
    async fn end(&mut self, leases: &[Named]) {
        let (verb, call) = match self.random.below(100) {
            0..50 => (Verb::Ack, "ack_many($1, $2, $3)"),
            50..60 => (Verb::Archive, "archive_many($1, $2, $3)"),
            60..75 => (Verb::Retry, "retry_many($1, $2, $3, delay => '200 ms', error => 'it failed')"),
            75..80 => (Verb::Bury, "bury_many($1, $2, $3, 'no use')"),
            80..88 => (Verb::Release, "release_many($1, $2, $3)"),
            88..94 => {
                self.user.rest(LEASE + Duration::from_millis(100)).await;
                (Verb::Ack, "ack_many($1, $2, $3)")
            }
            _ => return,
        };
        let (ids, attempts): (Vec<i64>, Vec<i32>) = leases.iter().copied().unzip();
        let op = self.user.invoked(Call::new(verb, self.name).named(leases.to_vec()));
        let ended = self.session.rows(&format!("select trunkline.{call}"), &[&self.name, &ids, &attempts]).await;
        self.user.say(
            op,
            match ended {
                Ok(_) => Said::ok(),
                // With a single message, a refusal shows which message lost its lease.
                Err(Said::Failed(why)) if leases.len() == 1 && why.contains("TL001") => {
                    Said::Ok { ids: Vec::new(), got: Vec::new(), lost: ids }
                }
                Err(said) => said,
            },
        );
    }

    async fn take_in(&mut self) {
        let n = self.random.within(1, 20) as usize;
        let rolls_back = self.random.chance(15);
        let op = self.user.invoked(Call::new(Verb::TakeIn, self.name).n(n));
        let said = match self.take_and_enter(n, op).await {
            // No commit was sent, so the rollback counts even if its call fails.
            Ok(()) if rolls_back => {
                let _ = self.session.end("rollback").await;
                Said::Failed("rolled back".to_owned())
            }
            Ok(()) => self.session.end("commit").await.map_or_else(|said| said, |()| Said::ok()),
            Err(said) => {
                self.session.close();
                // No commit was sent, no matter which statement failed.
                Said::Failed(format!("{said:?}"))
            }
        };
        self.user.say(op, said);
    }

    async fn take_and_enter(&mut self, n: usize, op: u64) -> Result<(), Said> {
        self.session.begin().await?;
        let text = "select id, attempt, payload, metadata ->> 'tag' from trunkline.take($1, $2)";
        let got: Vec<Got> = self.session.rows(text, &[&self.name, &(n as i32)]).await?.iter().map(delivered).collect();
        self.user.say(op, Said::Took(got.clone()));
        if got.is_empty() {
            return Ok(());
        }
        let tags: Vec<i64> = got.iter().map(|(_, _, tag)| *tag as i64).collect();
        let amounts: Vec<i64> = got.iter().map(|(_, _, tag)| tag::amount(*tag)).collect();
        let accounts: Vec<i32> = got.iter().map(|(_, _, tag)| tag::account(*tag)).collect();
        self.session.rows(plan::ENTER, &[&tags, &amounts, &self.user.name(op)]).await?;
        self.session.rows(plan::ADD, &[&accounts, &amounts]).await.map(drop)
    }

    /// Replays and discards dead letters, and makes calls that only read.
    async fn operate(mut self) {
        while !self.user.is_stopped() {
            let pause = Duration::from_millis(self.random.within(100, 600));
            self.user.rest(pause).await;
            let name = *self.random.among(&[plan::LEAST, plan::WORKS, plan::PURGED]);
            let op = self.user.invoked(Call::new(Verb::DeadLetters, name));
            let text = "select id from trunkline.dead_letters($1, 0, 20)";
            let letters = match self.session.rows(text, &[&name]).await {
                Ok(letters) => letters,
                Err(said) => {
                    self.user.say(op, said);
                    continue;
                }
            };
            self.user.say(op, Said::ok());
            let ids: Vec<i64> = letters.iter().map(|row| row.get(0)).filter(|_: &i64| self.random.chance(50)).collect();
            let named = ids.iter().map(|id| (*id, 0)).collect();
            match self.random.below(100) {
                0..45 if !ids.is_empty() => {
                    let op = self.user.invoked(Call::new(Verb::Replay, name).named(named));
                    let rows = self.session.rows("select trunkline.replay($1, $2)", &[&name, &ids]).await;
                    self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
                }
                45..55 if !ids.is_empty() => {
                    let op = self.user.invoked(Call::new(Verb::Discard, name).named(named));
                    let rows = self.session.rows("select trunkline.discard($1, $2)", &[&name, &ids]).await;
                    self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
                }
                55..70 => {
                    let op = self.user.invoked(Call::new(Verb::Stats, name));
                    let rows = self.session.rows("select * from trunkline.stats($1)", &[&name]).await;
                    self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
                }
                70..80 => {
                    // No message is old enough to be pruned, so any message that this call removes
                    // is lost.
                    let op = self.user.invoked(Call::new(Verb::Prune, name));
                    let rows = self.session.rows("select trunkline.prune($1, '1 day')", &[&name]).await;
                    self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
                }
                80..88 => {
                    let op = self.user.invoked(Call::new(Verb::Purge, plan::PURGED));
                    let rows = self.session.rows("select trunkline.purge($1)", &[&plan::PURGED]).await;
                    self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
                }
                _ => {
                    let op = self.user.invoked(Call::new(Verb::Peek, name));
                    let rows = self.session.rows("select * from trunkline.messages($1) limit 10", &[&name]).await;
                    self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
                }
            }
        }
    }
}

fn delivered(row: &tokio_postgres::Row) -> Got {
    (row.get(0), row.get(1), tag::of(row.get(2), row.get(3)))
}
