//! Handles messages whose keys have a rate, and records when each handler begins.

use std::{convert::Infallible, time::Duration};

use trunkline::{Message, Worker};

use super::user::User;
use crate::{
    history::{Call, Verb},
    rates::{QUEUE, key_of},
};

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let Some(queue) = user.queue(&db, QUEUE).await else { return Ok(()) };
    while !user.is_stopped() {
        let hand = user.clone();
        let worker = Worker::new(queue.clone(), move |message: Message<String>| {
            hand.invoked(Call::new(Verb::Handle, QUEUE).tags(vec![key_of(message.key.as_deref())]));
            async { Ok::<(), Infallible>(()) }
        });
        if let Err(error) = worker.shutdown_after(Duration::from_secs(3)).run(user.stopped()).await {
            user.pause(&error).await;
        }
    }
    Ok(())
}
