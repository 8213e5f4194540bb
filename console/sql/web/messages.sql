-- A page of messages by id. With a filter the queue is read from the page's beginning on, until the page is full.
select m.id,
       case when m.due_at <= clock_timestamp() then 'due' when m.attempt = 0 then 'delayed' when m.error is null then 'leased' else 'retrying' end,
       m.enqueued_at, m.due_at, m.attempt, m.error, left(m.payload, 200), octet_length(m.payload)::bigint, m.key
from trunkline.messages($1, first_id => $2::bigint + 1) m
where ($3::text is null or m.key = $3)
  and ($4::text is null or m.metadata::text like '%' || $4 || '%')
  and ($5::text is null
       or $5 = case when m.due_at <= clock_timestamp() then 'due' when m.attempt = 0 then 'delayed' when m.error is null then 'leased' else 'retrying' end)
order by m.id limit 50
