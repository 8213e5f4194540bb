//! The remaining contents of a shard that is draining.

use crate::{
    error::Result,
    postgres::{
        db::{Class, Db},
        sql::Sql,
        wire::only,
    },
    queue::verbs::stats::Stats as ShardStats,
    shards::{id::Id, set::Set, verbs::named},
};

/// The remaining contents of a shard that is draining.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Left {
    /// The name and the counts of each queue, and whether it is closed, which means permanently
    /// empty.
    pub queues: Vec<(String, ShardStats, bool)>,
    /// The number of messages that a drain has taken out of their queues but that may not be on
    /// another shard yet. They are not included in the counts of `queues`, and no consumer receives
    /// them until a drain has moved them.
    pub moving: u64,
}

impl Left {
    /// Returns the sums of the counts of all queues.
    #[must_use]
    pub fn sum(&self) -> ShardStats {
        self.queues.iter().fold(ShardStats::default(), |sum, (_, stats, _)| sum.plus(stats))
    }

    /// Returns true if every queue is closed: no message waits, is leased or is being moved, and no
    /// message can be added. Dead letters and archived messages stay.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.moving == 0 && self.queues.iter().all(|(_, _, is_closed)| *is_closed)
    }
}

impl Set {
    /// Returns the remaining contents of a shard.
    ///
    /// # Errors
    /// The errors of [`Set::resume`].
    pub async fn left(&self, shard: Id) -> Result<Left> {
        let db = &self.known(shard)?.db;
        let looking = async {
            let mut queues = Vec::new();
            for name in names(db).await? {
                let (stats, is_closed) = look(db, &name).await?;
                queues.push((name, stats, is_closed));
            }
            Ok(Left { queues, moving: moving(db).await? })
        };
        named(shard, looking.await)
    }
}

pub(super) async fn names(db: &Db) -> Result<Vec<String>> {
    Ok(db.list_queues().await?.into_iter().map(|queue| queue.name).collect())
}

pub(super) fn of_queue(db: &Db, name: &'static str, text: &str, queue: &str) -> Sql {
    Sql::filled(name, text, db.schema(), queue)
}

/// Returns the counts of a queue, and true if it is closed.
pub(super) async fn look(db: &Db, name: &str) -> Result<(ShardStats, bool)> {
    let stats = of_queue(db, "stats", include_str!("../../sql/statements/stats.sql"), name);
    let sealed = of_queue(db, "sealed", include_str!("../../sql/statements/sealed.sql"), name);
    let stats = ShardStats::of(&db.query_again(Class::Main, &stats, &[]).await?)?;
    Ok((stats, only(&db.query_again(Class::Main, &sealed, &[]).await?)?.read(0)?))
}

/// Messages that were taken out of a queue for a target shard, but may not be on it yet.
pub(super) struct OnTheirWay {
    pub queue: String,
    pub target: Id,
    messages: u64,
}

pub(super) async fn on_their_way(db: &Db) -> Result<Vec<OnTheirWay>> {
    let moves = db.statement("moves", include_str!("../../sql/statements/moves.sql"));
    if !only(&db.query_again(Class::Main, &moves, &[]).await?)?.read::<bool>(0)? {
        return Ok(Vec::new());
    }
    let moving = db.statement("moving", include_str!("../../sql/statements/moving.sql"));
    let rows = db.query_again(Class::Main, &moving, &[]).await?;
    rows.iter()
        .map(|row| {
            let target = Id(row.read::<i32>(1)?.cast_unsigned());
            Ok(OnTheirWay { queue: row.read(0)?, target, messages: row.read::<i64>(2)?.unsigned_abs() })
        })
        .collect()
}

pub(super) async fn moving(db: &Db) -> Result<u64> {
    Ok(on_their_way(db).await?.iter().map(|some| some.messages).sum())
}
