//! Makes the ticks of schedules, in several processes at the same time.

use super::user::User;

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    while !user.is_stopped() {
        if let Err(error) = db.run_schedules(user.stopped()).await {
            // Reports the error: it is no outage, because the call waits while the database is
            // unreachable.
            eprintln!("no ticks: {error}");
            user.rest(std::time::Duration::from_millis(100)).await;
        }
    }
    Ok(())
}
