//! The program end to end, as its users run it, on one throwaway PostgreSQL.

#[path = "../../../../tests/all/required.rs"]
mod required;
mod fixture;
mod demo;
mod queues;
mod describe;
mod messages;
mod input;
mod dead;
mod doctor;
mod console;
mod by_id;
mod bad_lines;
mod json_lines;
mod metadata;
mod errors;
mod own_words;
mod help;
mod command_line;
mod million;
mod ends;
mod breaks;
mod read_only;
mod work;
mod work_ends;
mod work_absent;
mod work_signalled;
mod rights;
mod schedules;
mod stripes;
mod private;
mod preference;
mod delay_proxy;
mod older;
mod watchdog;
