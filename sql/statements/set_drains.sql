-- Producers notice the change within seconds. The end of a drain does not rely on that: it makes
-- the table refuse rows (seal.sql).
update trunkline.stripe set drains = $1
