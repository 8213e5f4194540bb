-- Fails because transactions of other sessions have held locks for as long as a migration tried to get
-- them. Names the sessions that hold locks in the schema, and prepared transactions, which have no session.
begin;
set local search_path = pg_catalog, pg_temp;
do $$
declare
    sessions text;
    prepared text;
begin
    select string_agg(distinct l.pid::text, ', '), string_agg(distinct quote_literal(p.gid), ', ') into sessions, prepared
    from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
    left join pg_stat_activity a on a.pid = l.pid
    left join pg_locks x on l.pid is null and x.pid is null and x.virtualtransaction = l.virtualtransaction
    left join pg_prepared_xacts p on p.transaction = x.transactionid
    where l.granted and l.pid is distinct from pg_backend_pid() and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and n.nspname || '.' = 'trunkline.' and (a.xact_start is null or a.xact_start < clock_timestamp() - interval '500 ms');
    raise exception 'tables of the schema are in use; nothing was migrated' using errcode = 'lock_not_available',
        hint = format('A transaction that used them has been open for a minute. %s, then try again.%s%s',
                      case when prepared is null then 'End its session with pg_terminate_backend'
                           else 'End it with rollback prepared, or its session with pg_terminate_backend' end,
                      ' Prepared transactions that use the schema now: ' || prepared || '.', ' Sessions that use the schema now: ' || sessions || '.');
end $$;
