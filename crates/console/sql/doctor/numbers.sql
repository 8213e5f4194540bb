-- Finds counters that are close to their maximum.
select 'wrong', n.name,
       format('sequence %I has used %s %% of its numbers', s.sequencename, round(100.0 * s.last_value / s.max_value)), null::timestamptz,
       'Once all numbers are used, every enqueue fails.',
       format('select trunkline.repair_sequence(%L); -- while no message is leased', n.name)
from pg_sequences s, substr(s.sequencename, 4) n (name)
where s.schemaname = 'trunkline' and s.last_value > s.max_value * 0.8
union all
select case when w.used > 0.8 then 'wrong' else 'advice' end, null,
       format('database %s has used %s %% of its %s', current_database(), round(100 * w.used), w.what), null,
       'Close to the limit, PostgreSQL refuses every write until tables are frozen. Autovacuum freezes in time, unless it falls behind, or an old transaction or slot holds the horizon.',
       'vacuum (freeze, verbose);'
from (select age(d.datfrozenxid) / 2147483648.0 as used, 'transaction ids' as what from pg_database d where d.datname = current_database()
      union all
      select mxid_age(d.datminmxid) / 2147483648.0, 'multixact ids' from pg_database d where d.datname = current_database()) w
where w.used > 0.5
