-- Returns rows that are on their way to a shard, in their order: one row, or as many as fit in 16 MiB. Rows that an earlier release has moved out have no place.
select m.id, m.enqueued_at, m.due_at, m.attempt, m.released, m.error, m.size, m.payload, m.metadata, m.own
from (
    select r.*, pg_catalog.row_number() over w as nr, pg_catalog.sum(pg_catalog.octet_length(r.payload)) over w as bytes
    from (
        select m.id, m.place, m.enqueued_at, m.due_at, m.attempt, m.released, m.error, m.size, m.payload, m.metadata, m.own::pg_catalog.text
        from trunkline.moving m where m.queue operator(pg_catalog.=) $1 and m.target operator(pg_catalog.=) $2 order by m.place nulls first, m.id limit $3
    ) r
    window w as (order by r.place nulls first, r.id)
) m
where m.nr operator(pg_catalog.=) 1 or m.bytes operator(pg_catalog.<=) 16777216
order by m.nr
