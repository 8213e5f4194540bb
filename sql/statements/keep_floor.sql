-- Stores the floor for processes and sessions that start later. Returns whether some table is so large that compacting it may be worth its cost.
select trunkline.keep_floor($1, $2), exists (
    select from unnest(array['queue_', 'unique_', 'line_', 'lane_']) t(prefix)
    where pg_total_relation_size(to_regclass(format('trunkline.%I', t.prefix || $1))) >= 33554432)
