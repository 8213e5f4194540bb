-- The lock waits for inserts and transactions under way, so what is not seen then is not there. A constraint that no row meets needs no trigger,
-- costs the others nothing, and is gone with `unseal`.
set local search_path = pg_catalog, pg_temp;
set local lock_timeout = '1s';
lock table trunkline.{queue_} in access exclusive mode;
do $$ begin
    if not exists (select from trunkline.{queue_}) and not exists (
        select from pg_catalog.pg_constraint c where c.conrelid operator(pg_catalog.=) 'trunkline.{queue_}'::pg_catalog.regclass and c.conname operator(pg_catalog.=) 'drained')
    then
        alter table trunkline.{queue_} add constraint drained check (false);
    end if;
end $$
