//! The notifications that reach a consumer while it waits.

use std::time::Duration;

use crate::postgres::db::Subscription;

/// Returns the number of notifications so far, or `None` without a subscription.
pub(crate) fn heard(subscription: &mut Option<Subscription>) -> Option<u64> {
    subscription.as_mut().map(|subscription| subscription.heard.borrow_and_update().rings)
}

/// Returns the number of notifications and whether notifications arrive, both read at the same
/// moment. Marks them as seen.
pub(crate) fn heard_and_hears(subscription: &mut Option<Subscription>) -> (Option<u64>, bool) {
    let Some(subscription) = subscription else { return (None, false) };
    let heard = subscription.heard.borrow_and_update();
    (Some(heard.rings), heard.hearing)
}

/// Returns the number of notifications that came from other processes so far.
pub(crate) fn from_others(subscription: Option<&Subscription>) -> Option<u64> {
    subscription.map(|subscription| subscription.heard.borrow().from_others)
}

/// Returns true if notifications currently reach this process.
pub(crate) fn hears(subscription: Option<&Subscription>) -> bool {
    subscription.is_some_and(|subscription| subscription.heard.borrow().hearing)
}

/// Waits until a notification arrives that the count `rings` does not include, but for at most
/// `longest`.
pub(crate) async fn sleep(subscription: &mut Option<Subscription>, longest: Duration, rings: Option<u64>) {
    match subscription {
        Some(subscription) if Some(subscription.heard.borrow().rings) == rings => {
            let _ = tokio::time::timeout(longest, subscription.heard.changed()).await; // either ends the wait
        }
        Some(_) => {}
        None => tokio::time::sleep(longest).await,
    }
}
