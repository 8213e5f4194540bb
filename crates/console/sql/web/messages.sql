-- Returns messages of a part of the queue by id, up to one page. The states are the same as in trunkline.find. A search passes over thousands of
-- messages, and a payload may have 64 MiB. So only the payloads on the page are read, and the page shows only their beginnings. The text of bytea has two
-- digits for each byte, so its size is taken from the bytes.
with found as materialized (
    select q.id, m.k, s.state, {key} as key
    from trunkline.{queue} q,
         lateral (select generate_series(0, q.size - 1) as k, unnest(q.metadata) as metadata) m,
         lateral (select case when q.due_at <= clock_timestamp() then 'due' when q.error is not null then 'retrying'
                              when q.attempt = 0 then 'delayed' else 'leased' end as state) s
    where q.id >= ($1::bigint + 1) / 1024 * 1024 and q.id <= $2::bigint and q.id + m.k > $1::bigint and q.id + m.k <= $2::bigint
      and ($3::text is null or {key} = $3) and ($4::text is null or strpos(m.metadata::text, $4) > 0) and ($5::text is null or s.state = $5)
      and ($6::text is null or q.enqueued_at >= $6::timestamp at time zone 'UTC') and ($7::text is null or q.enqueued_at < $7::timestamp at time zone 'UTC')
    order by q.id, m.k limit 50)
select f.id + f.k, f.state, q.enqueued_at, q.due_at, q.attempt, left(q.error, 200), coalesce(left(p.payload, 200), ''),
       coalesce(case when (select trunkline.base_type(trunkline.payload_type({name})) = 'bytea'::regtype) then octet_length(p.payload::bytea)
                     else octet_length(p.payload) end, 0)::bigint, f.key
from found f join trunkline.{queue} q on q.id = f.id, lateral (select q.payload[f.k + 1]::text as payload offset 0) p
order by f.id, f.k
