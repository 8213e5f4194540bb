create or replace function trunkline.raise_in_use(queue text, period text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Fails because other transactions have held locks on the queue's tables for the period. The hint names the sessions that
-- hold such locks in a transaction that is older than a second, and prepared transactions, which have no session.
declare
    sessions text;
    prepared text;
begin
    select string_agg(distinct l.pid::text, ', '), string_agg(distinct quote_literal(p.gid), ', ') into sessions, prepared
    from pg_locks l join pg_class c on c.oid = l.relation left join pg_stat_activity a on a.pid = l.pid
    left join pg_locks x on l.pid is null and x.pid is null and x.virtualtransaction = l.virtualtransaction
    left join pg_prepared_xacts p on p.transaction = x.transactionid
    where l.granted and coalesce(a.xact_start < clock_timestamp() - interval '1 second', true) and l.pid is distinct from pg_backend_pid()
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and c.relname = any (array['queue_' || queue, 'lane_' || queue, 'line_' || queue, 'unique_' || queue, 'limit_' || queue, 'dead_' || queue, 'archive_' || queue,
                               'messages_' || queue])
      and c.relnamespace = (select s.relnamespace from pg_class s where s.oid = 'trunkline.queue'::regclass);
    raise exception 'queue % is in use', quote_literal(queue) using errcode = 'lock_not_available',
        hint = format('A transaction that used it has been open for %s. %s, then try again.%s%s', period,
                      case when prepared is null then 'End its session with pg_terminate_backend'
                           else 'End it with rollback prepared, or its session with pg_terminate_backend' end,
                      ' Prepared transactions that use it now: ' || prepared || '.', ' Sessions that use it now: ' || sessions || '.');
end $$;
