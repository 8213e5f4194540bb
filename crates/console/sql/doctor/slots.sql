-- Finds slots that no client reads: they keep WAL, and with an xmin also dead rows. From version 17 on, the server reports since when a slot is
-- inactive.
select 'wrong', null::text,
       format('replication slot %s (%s) is not read, and keeps %s of WAL%s', s.slot_name, s.slot_type,
              coalesce(pg_size_pretty(s.kept), 'an unknown amount'),
              case when s.xmin is not null then format(' and the rows that died in the last %s transactions', age(s.xmin)) else '' end),
       (s.row ->> 'inactive_since')::timestamptz,
       'WAL fills the disk until the slot''s consumer returns, or the slot is dropped.',
       format('select pg_drop_replication_slot(%L); -- %sits consumer must then be set up again', s.slot_name,
              case when s.database <> current_database() then format('in database %s; ', s.database) end)
from (select s.slot_name, s.slot_type, s.database, s.xmin, s.active, to_jsonb(s) as row,
             case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint end as kept
      from pg_replication_slots s) s
where not s.active and (s.row ->> 'inactive_since' is null or (s.row ->> 'inactive_since')::timestamptz < now() - interval '{patience}')
  and (s.xmin is not null or s.kept is not null)
order by s.slot_name
