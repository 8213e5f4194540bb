/// Lets the callers who were just answered run, so that what they ask for next shares the next statement. One has nobody to share with; and a task that
/// yields where nothing else runs makes the runtime wake another thread, which took a third of a lonely caller's time.
pub(crate) async fn give_way(answered: usize) {
    if answered > 1 {
        tokio::task::yield_now().await;
    }
}
