-- Marks a relay's row as ended. The row is deleted together with those that were silent for a day. See trunkline.forget_relays.
update trunkline.relay set seen_at = '-infinity' where name operator(pg_catalog.=) $1 and queue operator(pg_catalog.=) $2 and not inward
