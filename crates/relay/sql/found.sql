-- Inserts a relay's row, if the name is new.
insert into trunkline.relay (name, queue, broker, inward) values ($1, $2, $3, true) on conflict (queue, name) do nothing
