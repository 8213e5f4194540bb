//! Makes the ticks of schedules, in several processes at the same time.

use std::time::Duration;

use super::user::User;
use crate::{
    history::{Call, Said, Verb},
    plan,
};

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    while !user.is_stopped() {
        let op = user.invoked(Call::new(Verb::Tick, plan::TICKS));
        // Records an error as a failure: it is no outage, because the call waits while the database
        // is unreachable.
        if user.end(op, db.run_schedules(user.stopped()).await, |()| Said::ok()).is_none() {
            user.rest(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}
