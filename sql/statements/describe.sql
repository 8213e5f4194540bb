-- The payload's type is read from the table's definition, because it is stored nowhere else.
select q.name, coalesce(case when t.typbasetype operator(pg_catalog.<>) 0 then pg_catalog.format_type(t.typbasetype, t.typtypmod) end,
                        pg_catalog.format_type(t.oid, null), 'a type that was dropped'),
       q.max_attempts, extract(epoch from q.lease)::pg_catalog.float8, q.max_batch, q.created_at,
       case when $1::pg_catalog.text is not null then trunkline.kept_floor(q.name) else '-infinity' end as floor,
       q.paused, q.max_leased, q.per_second, q.burst,
       q.priorities, extract(epoch from q.head_start)::pg_catalog.float8, q.uniqueness, q.lanes, q.per_key, q.key_per_second, q.key_burst, q.first_lane, q.paused_at
from trunkline.queue q left join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) trunkline.payload_type(q.name)
where $1::pg_catalog.text is null or q.name operator(pg_catalog.=) $1 order by q.name
