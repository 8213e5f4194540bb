-- Our connections only: a role or database may default to another level, and compiling a statement costs more than any
-- of ours gains.
set session characteristics as transaction isolation level read committed;
set jit = off
