//! Tests the roles that see which messages move between shards.

use trunkline::Settings;

use crate::fixture::{Place, connect, place};

#[tokio::test(flavor = "multi_thread")]
async fn operator_of_all_queues_sees_how_many_messages_move() {
    let Place { sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    let roles = "do $$ begin create role moves_first login; create role moves_later login;
                 exception when duplicate_object then null; end $$;
                 select trunkline.grant_rights('moves_first', 'operator')";
    admin.batch_execute(roles).await.expect("granted");
    // Drops a role and leaves its row in the table of rights.
    let gone = "create role moves_gone; select trunkline.grant_rights('moves_gone', 'operator');
                drop owned by moves_gone; drop role moves_gone";
    admin.batch_execute(gone).await.expect("dropped");
    let tables = include_str!("../../../sql/statements/move_tables.sql");
    for _ in 0..2 {
        admin.batch_execute(&format!("begin; {tables}; commit")).await.expect("created");
    }
    admin.batch_execute("select trunkline.grant_rights('moves_later', 'operator')").await.expect("granted");
    for role in ["moves_first", "moves_later"] {
        let sql = connect(&format!("{url} user={role}")).await;
        sql.batch_execute(include_str!("../../../sql/statements/moving.sql")).await.expect("it may");
        sql.batch_execute("select payload from trunkline.moving").await.expect_err("not what they contain");
        admin.batch_execute(&format!("select trunkline.revoke_rights('{role}')")).await.expect("revoked");
        sql.batch_execute("select size from trunkline.moving").await.expect_err("revoked");
    }
}
