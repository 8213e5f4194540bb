-- Returns messages of a part of the queue by id, up to one page. The states are the same as in trunkline.find.
select m.id, s.state, m.enqueued_at, m.due_at, m.attempt, left(m.error, 200), left(m.payload, 200), octet_length(m.payload)::bigint, m.key
from trunkline.messages($1, first_id => $2::bigint + 1, last_id => $3::bigint) m,
     lateral (select case when m.due_at <= clock_timestamp() then 'due' when m.error is not null then 'retrying'
                          when m.attempt = 0 then 'delayed' else 'leased' end as state) s
where ($4::text is null or m.key = $4) and ($5::text is null or strpos(m.metadata::text, $5) > 0) and ($6::text is null or s.state = $6)
  and ($7::text is null or m.enqueued_at >= $7::timestamp at time zone 'UTC') and ($8::text is null or m.enqueued_at < $8::timestamp at time zone 'UTC')
order by m.id limit 50
