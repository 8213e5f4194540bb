-- A relay's row, if it is the first by its name.
insert into trunkline.relay (name, queue, broker, inward) values ($1, $2, $3, true) on conflict (queue, name) do nothing
