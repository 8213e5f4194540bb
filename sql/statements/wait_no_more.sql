-- Removes a consumer from the list. If there is nothing to remove, a message is already being
-- delivered. The statement fails if the transaction that sends a message to the consumer stays open:
-- a wait for it would hold up the other statements of the connection. The setting ends with the
-- statement, which has its own transaction.
select e.consumer
from (select pg_catalog.set_config('lock_timeout', '50ms', true) as patience) t,
     lateral trunkline.wait_no_more(case when t.patience is not null then $1 end) e(consumer)
