-- Producers see it within seconds. What counts is the end of a drain, which refuses (seal.sql).
update trunkline.stripe set drains = $1
