/// Lets the callers who were just answered run, so that what they ask for next shares the next
/// statement: with each other, or with those that wait for it. One alone has nobody to share with;
/// and a task that yields where nothing else runs makes the runtime wake another thread, which took
/// a third of a lonely caller's time.
pub(crate) async fn give_way(answered: usize, others_wait: bool) {
    if answered > 1 || others_wait {
        tokio::task::yield_now().await;
    }
}
