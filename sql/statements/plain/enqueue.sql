-- A plain insert is the cheapest durable write in Postgres. Each batch is one row, and one commit
-- contains up to eight rows. The messages are due now, by the default of the column.
insert into trunkline.{queue_} (size, payload) values ($1, $2) returning id
