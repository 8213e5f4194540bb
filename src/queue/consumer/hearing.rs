//! The notifications that reach a consumer while it waits.

use std::time::Duration;

use crate::postgres::db::Subscription;

/// Returns the number of notifications so far; `None` without a subscription.
pub(crate) fn heard(subscription: &mut Option<Subscription>) -> Option<u64> {
    subscription.as_mut().map(|subscription| subscription.heard.borrow_and_update().rings)
}

/// Reads both values at the same moment, and marks them as seen.
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

/// Waits for at most `longest`, or until a notification arrives that is not included in the count
/// `rings`.
pub(crate) async fn sleep(subscription: &mut Option<Subscription>, longest: Duration, rings: Option<u64>) {
    match subscription {
        Some(subscription) if Some(subscription.heard.borrow().rings) == rings => {
            let _ = tokio::time::timeout(longest, subscription.heard.changed()).await; // either ends the wait
        }
        Some(_) => {}
        None => tokio::time::sleep(longest).await,
    }
}
