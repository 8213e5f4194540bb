-- Reads whole batches without locking; the caller shows only as many messages as were requested. The states are the same as in do_find_, by the
-- server's clock.
select id, enqueued_at, due_at, attempt, error, size, payload, metadata,
       case when due_at operator(pg_catalog.<=) pg_catalog.clock_timestamp() then 'due' when error is not null then 'retrying'
            when attempt operator(pg_catalog.=) 0 then 'delayed' else 'leased' end as state,
       0 as priority, keys as key
from trunkline.page_by_due($1, null::trunkline.{queue_}, $2, $3, $4)
-- Makes the server plan this statement again after the table is recreated.
where 'trunkline.{queue_}'::pg_catalog.regclass is not null
