-- Runs only on the library's own connections. A role or database may have other defaults: another
-- isolation level, or row_security = off, which makes queries of tables with policies an error. JIT
-- is off because compiling a statement costs more than it saves for any of the library's statements.
set session characteristics as transaction isolation level read committed;
set row_security = on;
set jit = off
