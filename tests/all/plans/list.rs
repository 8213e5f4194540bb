//! Every statement and function of the library, with its way to reach a queue's rows. Statements
//! and functions that touch no rows are listed with the reason.

/// The ways in which a statement may reach its rows.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// The statement must use the first of these scans, and may use the others. `TIDSCAN` reaches a
    /// row that is already locked, and `TIDRANGESCAN` a range of pages.
    Along(&'static [&'static str]),
    /// The statement may use any of these scans, depending on the table.
    Either(&'static [&'static str]),
    /// The statement reads no rows.
    NoRows,
    /// The statement may read everything, for the given reason.
    All(&'static str),
}
use Way::{All, Along, Either, NoRows};

const DUE: Way = Along(&["due_q"]);
const DUE_FIRST: Way = Along(&["due_q", "key_q", "TIDSCAN"]);
const KEY: Way = Along(&["key_q", "TIDSCAN"]);
const DEAD: Way = Along(&["deadkey_q"]);
/// The way of a statement that buries a message: it also checks whether the dead letters already
/// contain the id.
const BURIED: Way = Along(&["key_q", "deadkey_q", "TIDSCAN"]);
const KEPT: Way = Along(&["key_q", "archivekey_q", "TIDSCAN"]);
const BACK: Way = Along(&["deadkey_q", "key_q"]);
const FIND: Way = Along(&["key_q", "deadkey_q", "archivekey_q"]);
const WAITING: Way = Along(&["pk_waiting"]);
const SCHEDULES: Way = Along(&["schedule_by_next"]);
/// The statement also repairs ticks that a clock set ahead has left in the future.
const DUE_IN: Way = Along(&["schedule_by_next", "schedule_by_placed"]);
/// The statement also reads the message that is due last.
const KEEP: Way = Along(&["pk_floor", "due_q"]);
const SWEEP: Way = Either(&["due_q", "TIDRANGESCAN"]);
const TAKE: Way = Along(&["due_q", "key_q", "TIDSCAN", "TIDRANGESCAN", "pk_floor"]);

/// `SEQSCAN` is the read of the sequence, which has no index. A scan of a whole table would appear
/// with an aggregate over it.
const REPAIR: Way = Along(&["key_q", "deadkey_q", "archivekey_q", "pk_dropped", "SEQSCAN"]);

/// The name of a file without its extension, the call, and its way. `IDS` are ten leased messages
/// and an id that does not exist, which forces a search for a row to split. `ONES`, `ZEROS` and
/// `TEXTS` have the same length. `LETTERS` are dead letters and an id that does not exist.
pub type Planned = (&'static str, &'static str, Way);

/// The files of `sql/statements`, with their parameters. Files in `plain/` belong to queues without
/// priorities and keys.
pub const STATEMENTS: &[Planned] = &[
    ("take", "5, '-infinity', 1, true", DUE_FIRST),
    ("take", "5, '-infinity', 1, false", DUE_FIRST),
    ("cut", "5, '-infinity'", DUE),
    ("lease", "5, null, '-infinity', 1", DUE_FIRST),
    ("lease_together", "5, null, '-infinity', 1", DUE_FIRST),
    ("look", "'-infinity', 'q'", DUE),
    ("sweep", "now(), 0", SWEEP),
    ("sweep", "now(), 1", Along(&["TIDRANGESCAN"])),
    ("ack", "IDS, ONES, ONES", KEY),
    ("archive", "IDS, ONES, ONES", KEPT),
    ("release", "IDS, ONES, ONES", KEY),
    ("extend", "IDS, ONES, ONES, 30", KEY),
    ("retry", "IDS, ONES, ONES, ZEROS, TEXTS", KEY),
    ("bury", "IDS, ONES, ONES, TEXTS", BURIED),
    ("charge", "IDS, ONES, ONES, ZEROS, TEXTS", KEY),
    ("carve", "IDS, ONES, ONES", KEY),
    // Acknowledges the first message in a leased row of three, so that the row is split.
    ("ack", "'{3072000001024}', '{1}', '{1}'", KEY),
    ("plain/enqueue", "1, '{1}'", NoRows),
    ("plain/enqueue_with", r#"0, 1, '{1}', array['{"a": "b"}'::jsonb]"#, NoRows),
    ("plain/enqueue_in", r#"'{1}', 0, array['{"a": "b"}'::jsonb]"#, NoRows),
    ("put_back", "7, now(), 1, 0, null, 1, '{1}', null, null", NoRows),
    ("put_back", r#"8, now(), 1, 0, null, 1, '{1}', null, '{"gone": "x"}'"#, NoRows),
    ("plain/peek", "'q', '-infinity', 0, 100", DUE),
    ("plain/dead", "0, 100", DEAD),
    ("plain/archived", "0, 100", Along(&["archivekey_q"])),
    ("replay", "'q', LETTERS, 0, 100", BACK),
    ("replay", "'q', null, 0, 100", BACK),
    ("discard", "'q', LETTERS, 0, 100", DEAD),
    ("discard", "'q', null, 0, 100", DEAD),
    ("prune", "'q', 60", Along(&["age_q"])),
    ("enqueue_row", "'q', '{1}', '{}', 0, null, 0, null", NoRows),
    ("enqueue_rows", "'q', '{1}', '{}', 0, null, 0, null", NoRows),
    ("own_columns", "'q', '{3072000001025,6000000000003,7000000000000}'", FIND),
    ("find", "3072000001025", FIND),
    ("find", "6000000000003", FIND),
    ("find", "7000000000000", FIND),
    ("gone", "'q', IDS, ONES", KEY),
    ("cancel", "IDS", KEY),
    // This is one message in a row of three.
    ("cancel", "'{3072000001025}'", KEY),
    ("reschedule", "'{2048,3072}', 60", KEY),
    ("reschedule", "'{2048,3072}', -4000000000", KEY),
    ("pick", "IDS, true", KEY),
    ("cancel_in", "'q', IDS", KEY),
    ("reschedule_in", "'q', '{2048,3072}', 60", KEY),
    ("purge", "'q'", All("empties the table")),
    ("stats", "", All("counts every message")),
    ("send_direct", r"'q', '\x01', null", Along(&["waiting_by_queue", "pk_waiting"])),
    ("wait_for", "'c', 'q', 1", NoRows),
    ("wait_no_more", "'c1'", WAITING),
    ("keep_floor", "'q', now()", KEEP),
    ("schedules_due_in", "'-infinity'", DUE_IN),
    ("claim_schedules", "'-infinity', 5", SCHEDULES),
    ("tick", "'{}', '{}'", Along(&["TIDSCAN"])),
    ("place_schedules", "'{}', '{}', '{}', '{}'", Along(&["TIDSCAN"])),
];

/// The statements that have a separate form for queues with priorities.
pub const WITH_PRIORITIES: &[Planned] = &[
    ("priority/enqueue", "0, 1, '{1}', null, 2", NoRows),
    ("priority/enqueue_in", "'{1}', 0, null, 2", NoRows),
    ("priority/peek", "'q', '-infinity', 0, 100", DUE),
    ("priority/dead", "0, 100", DEAD),
    ("priority/archived", "0, 100", Along(&["archivekey_q"])),
];

/// Whole statements for rows in a state that the tables lack: the oldest message of each priority
/// has used all attempts.
pub const RARE: &[Planned] = &[(
    "expire",
    "set local enable_seqscan = off; set local enable_bitmapscan = off;
     update trunkline.queue_q set attempt = 1000 where id in (1024, 2048, 3072, 4096);
     select trunkline.take('q', 5)",
    Along(&["key_q", "TIDSCAN", "due_q", "deadkey_q", "TIDRANGESCAN", "pk_floor"]),
)];

/// The files of `sql/functions`, each with a call.
pub const VERBS: &[Planned] = &[
    ("take", "trunkline.take('q', 5)", TAKE),
    ("take", "trunkline.take('q', 5, '20 ms')", TAKE),
    ("lease", "trunkline.lease('q', 5)", TAKE),
    ("lease", "trunkline.lease('q', 5, null, '20 ms')", TAKE),
    ("floor", "trunkline.floor('q')", Along(&["due_q", "pk_floor", "TIDRANGESCAN"])),
    ("look_floor", "trunkline.look_floor('q', true)", Along(&["due_q", "pk_floor", "TIDRANGESCAN"])),
    ("take", "trunkline.take('q')", TAKE),
    ("lease", "trunkline.lease('q')", TAKE),
    ("keep_floor", "trunkline.keep_floor('q', now())", KEEP),
    ("settle", "trunkline.settle('ack', 'q', IDS, ONES)", KEY),
    ("ack", "trunkline.ack('q', 5000000000007, 1)", KEY),
    ("ack_many", "trunkline.ack_many('q', IDS, ONES)", KEY),
    ("archive", "trunkline.archive('q', 5000000000007, 1)", KEPT),
    ("archive_many", "trunkline.archive_many('q', IDS, ONES)", KEPT),
    ("release", "trunkline.release('q', 5000000000007, 1)", KEY),
    ("release_many", "trunkline.release_many('q', IDS, ONES)", KEY),
    ("extend", "trunkline.extend('q', 5000000000007, 1, '1 min')", KEY),
    ("extend_many", "trunkline.extend_many('q', IDS, ONES, '1 min')", KEY),
    ("retry", "trunkline.retry('q', 5000000000007, 1)", KEY),
    ("retry_many", "trunkline.retry_many('q', IDS, ONES)", KEY),
    ("bury", "trunkline.bury('q', 5000000000007, 1)", BURIED),
    ("bury_many", "trunkline.bury_many('q', IDS, ONES)", BURIED),
    ("charge", "trunkline.charge('q', 5000000000007, 1)", KEY),
    ("charge_many", "trunkline.charge_many('q', IDS, ONES)", KEY),
    ("enqueue", "trunkline.enqueue('q', 1::bigint)", NoRows),
    ("enqueue_one", "trunkline.enqueue_one('q', 1::bigint, '0', null, 0, null, null, false, null)", NoRows),
    ("enqueue_text", "trunkline.enqueue('q', '1'::text)", NoRows),
    ("enqueue_many", "trunkline.enqueue_many('q', '{1}'::bigint[])", NoRows),
    ("enqueue_many_text", "trunkline.enqueue_many('q', '{1}'::text)", NoRows),
    ("enqueue_many_texts", "trunkline.enqueue_many('q', '{1}'::text[])", NoRows),
    ("enqueue_many_varchars", "trunkline.enqueue_many('q', '{1}'::varchar[])", NoRows),
    ("enqueue_row", "trunkline.enqueue_row('q', '{1}'::bigint[], '{}', 0, null, 0, null)", NoRows),
    ("enqueue_rows", "trunkline.enqueue_rows('q', '{1}'::bigint[], '{}', 0, null, 0, null)", NoRows),
    ("enqueue_with_columns", "trunkline.enqueue_with_columns('q', '1', '{}')", NoRows),
    ("enqueue_many_with_columns", "trunkline.enqueue_many_with_columns('q', '{1}', '{}')", NoRows),
    ("own_columns", "trunkline.own_columns('q', '{3072000001025,6000000000003,7000000000000}')", FIND),
    ("dead_letters", "trunkline.dead_letters('q')", DEAD),
    ("replay", "trunkline.replay('q', LETTERS)", BACK),
    ("replay_all", "trunkline.replay_all('q')", BACK),
    ("discard", "trunkline.discard('q', LETTERS)", DEAD),
    ("discard_all", "trunkline.discard_all('q')", All("empties the table")),
    ("prune", "trunkline.prune('q', '1 min')", Along(&["age_q"])),
    ("find", "trunkline.find('q', 7)", FIND),
    ("cancel", "trunkline.cancel('q', IDS)", KEY),
    ("change", "trunkline.change('cancel', 'q', '{7168}')", KEY),
    ("reschedule", "trunkline.reschedule('q', '{2048}', now())", KEY),
    ("purge", "trunkline.purge('q')", All("empties the table")),
    ("messages", "trunkline.messages('q')", All("shows every message, in order")),
    ("page", "trunkline.page(null::trunkline.dead_q, 0, 100)", DEAD),
    ("page_by_due", "trunkline.page_by_due('q', null::trunkline.queue_q, '-infinity', 0, 100)", DUE),
    ("gone", "trunkline.gone('q', IDS, ONES)", KEY),
    ("letters_after", "trunkline.letters_after('q', 7, 100)", DEAD),
    ("discard_some", "trunkline.discard_some('q', null, 100)", DEAD),
    ("replay_some", "trunkline.replay_some('q', null, 100)", BACK),
    ("messages_within", "trunkline.messages_within('q', 7168, 7170, null, null)", Along(&["key_q"])),
    ("messages", "trunkline.messages('q', first_id => 7168, last_id => 7170)", Along(&["key_q"])),
    ("messages", "trunkline.messages('q', due_before => now() - interval '1 hour')", DUE),
    ("stats", "trunkline.stats('q')", All("counts every message")),
    ("send_direct", "trunkline.send_direct('q', 1::bigint)", Along(&["waiting_by_queue", "pk_waiting"])),
    ("send_direct_text", "trunkline.send_direct('q', '1'::text)", Along(&["waiting_by_queue", "pk_waiting"])),
    ("send_direct_one", "trunkline.send_direct_one('q', 1::bigint, null)", Along(&["waiting_by_queue", "pk_waiting"])),
    ("send_element", r"trunkline.send_element('q', '\x01')", Along(&["waiting_by_queue", "pk_waiting"])),
    ("wait_no_more", "trunkline.wait_no_more('c1')", WAITING),
    ("repair_sequence", "trunkline.repair_sequence('q')", REPAIR),
    ("schedules_due_in", "trunkline.schedules_due_in('-infinity')", DUE_IN),
    ("claim_schedules", "trunkline.claim_schedules('-infinity', 5)", SCHEDULES),
    ("tick", "trunkline.tick('{}', '{}')", Along(&["TIDSCAN"])),
    ("place_schedules", "trunkline.place_schedules('{}', '{}', '{}', '{}')", Along(&["TIDSCAN"])),
];

/// The files of `sql/statements` whose query plans are not checked, grouped by the reason.
pub const STATEMENTS_APART: &[(&str, &[&str])] = &[
    ("they speak to other sessions", &["announce", "notify", "notify_in", "withdraw"]),
    ("they speak of the session", &["alive", "clean", "connect", "in_catalog", "keep_memory", "transactions"]),
    (
        "they read the catalog, by its keys",
        &["payload_name", "payload_type", "schema_exists", "sealed", "type", "type_fields", "type_labels"],
    ),
    ("they read or change the one row that a shard has", &["set_drains", "shard"]),
    ("it adds to a table of its own, which has an hour's rows", &["report"]),
    ("they list queues, or schedules, of which there are few", &["describe", "schedules"]),
    (
        "they lock the whole queue or schema, seldom",
        &[
            "alter_queue",
            "build_dispatch",
            "compact",
            "create_queue",
            "drop_queue",
            "install_queues",
            "limit_queue",
            "pause_queue",
            "resume_queue",
            "seal",
            "teardown",
            "teardown_few",
            "teardown_many",
            "unseal",
        ],
    ),
    (
        "they change one schedule, of which there are few, seldom",
        &["drop_schedule", "fail_schedule", "fire_schedule", "pause_schedule", "resume_schedule", "set_schedule"],
    ),
    (
        "they move what waits from one shard to another, when it is taken out",
        &["move_done", "move_due", "move_in", "move_order", "move_out", "move_rows", "move_tables", "moves", "moving"],
    ),
    ("as above, for a queue with keys", &["partitioned/move_due", "partitioned/move_order"]),
    ("they speak of roles and their rights, seldom", &["grant", "no_role", "revoke", "shared_rights"]),
    ("they describe functions, after a migration", &["describe_queues", "describe_shared"]),
    ("it moves every message, in tests alone", &["shift"]),
    (
        "they speak of the schema's versions",
        &[
            "fits_unquoted",
            "functions_of",
            "migrate_begin",
            "migrate_finish",
            "migrate_in_use",
            "migrate_record",
            "schema_version",
            "schema_version_first",
            "template",
        ],
    ),
];
