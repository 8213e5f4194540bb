//! The promises of Trunkline, each shown on a real PostgreSQL.

// A cluster, databases, places, and what a machine may lack.
mod fixture;

// The verbs: each guarantee, each way in, many at once.
mod contract;
mod model;
mod crowd;
mod leases;
mod by_id;
mod late;
mod stream;
mod hand_over;
mod metadata;
mod payloads;
mod floor;

// What fails: bad input, messages that nobody can read, dead letters, tables that somebody changed.
mod bad_input;
mod refusals;
mod wording;
mod large;
mod unreadable;
mod pages;
mod dead;
mod drafts;
mod guards;
mod traps;
mod shapes;
mod shared;

// What breaks: connections, callers, runtimes, servers, disks.
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

// The driver: statements, transactions, round trips, and what is between us and the server.
mod statements;
mod transactions;
mod generic_client;
mod round_trips;
mod left_behind;
mod asides;
mod pooler;
mod tls;
mod environment;
mod conformance;

// The schema: how it comes to be, who may do what, the verbs in SQL.
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
mod rebuilt;
mod ordinary_role;
mod sql_functions;
mod sql_lists;
mod sql_messages;
mod sql_waits;
mod own_columns;
mod reference;
mod written;
mod versions;

// What it costs: plans, pages, and nothing where nothing is to be done.
mod plans;
mod costs;
mod idle;
mod lookout;

// Several servers.
mod stripes;

// Workers, and what can be seen from outside.
mod worker;
mod traces;
mod observability;

// What the tests of users stand on.
mod testing;

// The house itself.
mod examples;
mod house;
