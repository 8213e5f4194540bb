-- Runs only on the library's own connections. A role or database may have another isolation level
-- as its default. JIT is off because compiling a statement costs more than it saves for any of the
-- library's statements.
set session characteristics as transaction isolation level read committed;
set jit = off
