//! The promises of Trunkline, each demonstrated on a real PostgreSQL.

// Helpers: a cluster, databases, queues, and requirements that a machine may not meet.
mod fixture;

// The verbs: each guarantee, each way to enqueue, many callers at once.
mod contract;
mod model;
mod crowd;
mod leases;
mod leased_alone;
mod ack_and_lease;
mod locked;
mod dequeue_options;
mod by_id;
mod late;
mod stream;
mod direct;
mod dispatch;
mod announced;
mod metadata;
mod payloads;
mod floor;
mod compaction;

// Failures: bad input, unreadable messages, dead letters, tables that users changed.
mod bad_input;
mod refusals;
mod wording;
mod large;
mod unreadable;
mod pages;
mod parts;
mod dead;
mod drafts;
mod early_rows;
mod guards;
mod traps;
mod shapes;
mod shared;

// Outages: connections, callers, runtimes, servers, disks.
mod crash;
mod chaos;
mod cuts;
mod cancelled;
mod outliving;
mod runtimes;
mod restarts;
mod failover;
mod moved;
#[cfg(target_os = "linux")]
mod clocks;
mod full_disk;

// The driver: statements, transactions, round trips, and proxies between the client and the server.
mod statements;
mod column_types;
mod lonely;
mod transactions;
mod transact;
mod row_streams;
mod generic_client;
mod compat;
mod round_trips;
mod left_behind;
mod changed_columns;
mod changed_types;
mod asides;
mod pooler;
mod tls;
#[cfg(target_os = "linux")]
mod certificates;
mod environment;
mod conformance;

// The schema: its creation, its rights, the verbs in SQL.
mod migrate;
mod schedules;
mod keys;
mod limits;
mod priorities;
mod unique;
mod schemas;
mod altered;
mod granted;
mod offers;
mod open_ends;
mod dropped_type;
mod silent_triggers;
mod undelivered;
mod extended;
mod failed_begin;
mod rebuilt;
mod ordinary_role;
mod sql_functions;
mod sql_lists;
mod sql_messages;
mod sql_types;
mod sql_waits;
mod own_columns;
mod column_names;
mod values_of_columns;
mod reference;
mod written;
mod versions;

// Costs: plans, pages, and no work on an idle queue.
mod plans;
mod costs;
mod idle;
mod wait_list;

// Several servers.
mod shards;

// Workers, and observability.
mod worker;
mod traces;
mod observability;

// The test helpers for users.
mod testing;

// The source tree itself.
mod examples;
mod sql_files;
mod house;
