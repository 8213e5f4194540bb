//! Waits for a message that may arrive inside a notification.

use super::{
    Consumer,
    hearing::{heard_and_hears, hears, sleep},
    offer::Offer,
};
use crate::{
    error::Result,
    queue::{
        message::{Message, payload::Payload},
        verbs::direct::Mailbox,
    },
};

impl<T: Payload> Consumer<T> {
    /// Waits for one message, delivered at most once. While it waits, it can also receive messages
    /// that [`Queue::send_direct`](crate::Queue::send_direct) sends inside notifications. Use this
    /// method for rare messages that must arrive fast: the consumer enters a list of waiting
    /// consumers before each wait, and leaves the list after it.
    pub async fn receive_direct(&mut self) -> Result<Message<T>> {
        loop {
            // Continues after an unreadable message, whose attempt has failed.
            if let Some(message) = self.offer_receive_direct().await?.accept(Ok)?.pop() {
                return Ok(message);
            }
        }
    }

    /// Waits like [`Consumer::receive_direct`], for a caller that may be gone when the message
    /// arrives. Returns one message, which is put back unless the caller accepts it.
    #[doc(hidden)]
    pub async fn offer_receive_direct(&mut self) -> Result<Offer<T>> {
        let Self { queue, pace, subscription, place, hooks, .. } = self;
        let place = place.get_or_insert_with(|| Mailbox::new(&queue.shared));
        subscription.get_or_insert_with(|| queue.shared.db.subscribe(&queue.shared.channel));
        loop {
            let (rings, was_hearing) = heard_and_hears(subscription);
            // Returns a message that was sent while an earlier call was dropped.
            if let Some(letter) = place.leave().await? {
                return Ok(Offer::direct(queue, letter));
            }
            let offer = queue.offer_take(1).await?;
            if !offer.is_empty() {
                return Ok(offer);
            }
            // The consumer enters the list only if the listener already listens to both channels.
            // Otherwise starting to listen to the second channel would make the consumer leave the
            // list again at once.
            if was_hearing {
                place.enter().await?;
            }
            let due_in = queue.shared.look().await?;
            let longest = pace.looked(due_in, hears(subscription.as_ref()));
            hooks.before_wait();
            tokio::select! {
                letter = place.letter() => if let Some(letter) = letter? { return Ok(Offer::direct(queue, letter)) },
                () = sleep(subscription, longest, rings) => {}
            }
        }
    }

    /// Leaves the list of waiting consumers, as dropping the consumer does, and returns once that
    /// is done. A message that was on its way, or had arrived for a call that was dropped, is then
    /// enqueued.
    #[doc(hidden)]
    pub async fn close_direct(&mut self) {
        if let Some(leaving) = self.place.take().and_then(Mailbox::abandon) {
            let _ = leaving.await; // fails only if the runtime ends
        }
        self.queue.shared.unclaimed.returned().await;
    }

    /// Leaves the list of waiting consumers when no call is waiting any longer.
    pub(crate) async fn withdraw(&mut self) -> Result<()> {
        match &mut self.place {
            Some(place) => place.withdraw().await,
            None => Ok(()),
        }
    }
}
