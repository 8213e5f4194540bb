//! Each check finds what it is for in a real server, and nothing where all is well.

mod doctor;
