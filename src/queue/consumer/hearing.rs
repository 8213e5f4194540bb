//! What a consumer hears while it waits.

use std::time::Duration;

use crate::postgres::db::Subscription;

/// Notifications heard so far.
pub(crate) fn heard(subscription: &mut Option<Subscription>) -> Option<u64> {
    subscription.as_mut().map(|subscription| subscription.heard.borrow_and_update().rings)
}

/// Both at one moment: what is heard first after it is no news then.
pub(crate) fn heard_and_hears(subscription: &mut Option<Subscription>) -> (Option<u64>, bool) {
    let Some(subscription) = subscription else { return (None, false) };
    let heard = subscription.heard.borrow_and_update();
    (Some(heard.rings), heard.hearing)
}

/// Whether notifications arrive at present.
pub(crate) fn hears(subscription: Option<&Subscription>) -> bool {
    subscription.is_some_and(|subscription| subscription.heard.borrow().hearing)
}

/// Until the time is up, or something is heard that was not among `rings`.
pub(crate) async fn sleep(subscription: &mut Option<Subscription>, longest: Duration, rings: Option<u64>) {
    match subscription {
        Some(subscription) if Some(subscription.heard.borrow().rings) == rings => {
            let _ = tokio::time::timeout(longest, subscription.heard.changed()).await; // either will do
        }
        Some(_) => {}
        None => tokio::time::sleep(longest).await,
    }
}
