//! Random histories: each taken message had the highest sum of age and aging, to within one
//! sixteenth of the aging.

use proptest::prelude::*;
use trunkline::Settings;

use super::{of, reopened};
use crate::fixture::{Place, place};

const HEAD_START: f64 = 60.0;

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_taken_by_age_and_priority(
        // Each message has a priority, and a number of seconds since it became due.
        messages in prop::collection::vec((0..4_u8, 1..400_u32), 1..60),
        sizes in prop::collection::vec(1..20_usize, 60),
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let Place { queue, sql, url, .. } = place::<i64>(Settings::new("int8").priorities(4)).await;
            for (payload, (priority, _)) in (0_i64..).zip(&messages) {
                queue.enqueue(of(payload, *priority)).await.expect("enqueued");
            }
            let ages: Vec<f64> = messages.iter().map(|(_, age)| f64::from(*age)).collect();
            let moved = "update trunkline.queue_q q set due_at = now() - $1[q.payload[1] + 1] * interval '1 second'";
            sql.execute(&moved.replace("$1[", "($1::float8[])["), &[&ages]).await.expect("moved");
            let queue = reopened(&url).await;
            let rank = |payload: i64| {
                let (priority, age) = messages[payload as usize];
                f64::from(priority) * HEAD_START + f64::from(age)
            };
            let mut left: Vec<i64> = (0..messages.len() as i64).collect();
            for n in sizes {
                let taken = queue.take(n).await.expect("taken");
                prop_assert_eq!(taken.len(), n.min(left.len()));
                for message in &taken {
                    let first = left.iter().map(|payload| rank(*payload)).fold(f64::MIN, f64::max);
                    // Allows one second for the time that passes in the meantime.
                    prop_assert!(rank(message.payload) >= first - HEAD_START / 16.0 - 1.0, "{} before {first}", rank(message.payload));
                    left.retain(|payload| *payload != message.payload);
                }
                if left.is_empty() {
                    break;
                }
            }
            // Within a priority, the order is exactly by age.
            Ok(())
        })?;
    }
}
