-- Locks the table only if it has the constraint, and waits for the lock for at most ten seconds.
do $$ begin
    if exists (
        select from pg_catalog.pg_constraint c where c.conrelid operator(pg_catalog.=) 'trunkline.{queue_}'::pg_catalog.regclass and c.conname operator(pg_catalog.=) 'drained')
    then
        set local lock_timeout = '10s';
        alter table trunkline.{queue_} drop constraint drained;
    end if;
end $$
