-- The lock waits for running inserts and transactions, so rows that are not visible after that do
-- not exist. The table then gets a constraint that no row satisfies. It needs no trigger, costs
-- other queues nothing, and `unseal` removes it.
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
