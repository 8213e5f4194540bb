-- Runs only on the library's own connections. A role or database may have another isolation level as its default, and compiling a statement costs
-- more than any of the library's statements gains.
set session characteristics as transaction isolation level read committed;
set jit = off
