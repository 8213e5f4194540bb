//! The functions whose plans are not checked, grouped by the reason.

/// The reason why these plans are not checked in queues without keys. `keys.rs` checks them.
const WITH_KEYS: &str = "only queues with keys call them; their plans are checked separately";

/// The files of `sql/functions` that touch no rows of a queue.
pub const FUNCTIONS_APART: &[(&str, &[&str])] = &[
    ("they copy a whole table", &["compact", "rewrite"]),
    (
        "they only call what is planned, lock, listen, or ask for a role",
        &[
            "announced",
            "check_owner",
            "check_rights",
            "check_role",
            "kept_floor",
            "listen",
            "lock_queue",
            "unlisten",
            "wait_for_rewrite",
        ],
    ),
    (
        "of types",
        &["converted", "payload_as", "payloads_as", "payloads_of", "read_as", "refuse_cut", "shortens", "written"],
    ),
    (
        "they only compute with their arguments",
        &[
            "clock",
            "due_from",
            "due_of",
            "epoch_of",
            "floors",
            "header_of",
            "lane_of",
            "missing",
            "not_stored",
            "own",
            "payload_bytes",
            "time_of",
            "tokens",
            "fill",
        ],
    ),
    (
        "they check what they are given",
        &[
            "check_delay",
            "check_ids",
            "check_lease",
            "check_metadata",
            "check_n",
            "check_schedule",
            "check_settings",
            "check_unique_key",
            "check_wait",
            "found_schedule",
            "keep_place",
            "refuse_row",
        ],
    ),
    (
        "they read the catalog, or the list of queues, by its key",
        &[
            "base_type",
            "is_held",
            "is_large",
            "check_columns",
            "check_keyed",
            "check_keys",
            "check_priority",
            "check_queue",
            "check_snapshot",
            "check_unique",
            "in_lanes",
            "is_array",
            "parts_of",
            "payload_type",
            "refuse_keys",
        ],
    ),
    (
        "they lock the whole queue, seldom",
        &[
            "alter_queue",
            "build_dispatch",
            "create_queue",
            "create_queue_text",
            "drop_queue",
            "install_functions",
            "install_queue",
            "limit_queue",
            "more_lanes",
            "pause_queue",
            "rebuild",
            "resume_queue",
            "set_paused",
            "hold_retries",
            "lock_partitions",
            "raise_in_use",
            "set_vacuum",
            "sort_lanes",
        ],
    ),
    (
        "they change one schedule, of which there are few, seldom",
        &[
            "drop_schedule",
            "fail_schedule",
            "fire_schedule",
            "pause_schedule",
            "resume_schedule",
            "right_schedules",
            "set_schedule",
        ],
    ),
    (WITH_KEYS, &["along_lanes", "lease_partition", "more", "release_partition"]),
    ("it reads all that is due later, after a clock was set back", &["repair_times"]),
    ("it moves every message, in tests alone", &["shift"]),
    ("they are for what happens once: an id that is there already", &["keep_letter"]),
    ("they delete from tables of their own, which have a day's rows", &["forget_relays", "forget_workers"]),
    ("they change rights, seldom", &["apply_rights", "apply_shared_rights", "grant_rights", "revoke_rights"]),
    ("it reads the catalog by the names of functions, seldom", &["describe_functions"]),
];

/// The files of `sql/queue` that are not functions for normal operation, by their names.
pub const TEMPLATES_APART: &[(&str, &[&str])] = &[
    ("they make the tables and their triggers", &["tables", "triggers"]),
    ("a view, which the function of its name reads", &["messages"]),
    ("they are constants or columns by the time that a plan is made", &["own", "kept", "keptof"]),
];

/// The functions of queues with keys that only refuse the call, and therefore read no rows.
pub const REFUSALS: &[&str] = &["batch", "cut", "lease", "take"];
