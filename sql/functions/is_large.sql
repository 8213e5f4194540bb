create or replace function trunkline.is_large(queue text) returns bool
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Returns whether one of the queue's tables is so large that trunkline.compact may be worth its cost.
begin
    return exists (
        select from unnest(array['queue_', 'unique_', 'line_', 'lane_']) t(prefix)
        where pg_total_relation_size(to_regclass(format('trunkline.%I', t.prefix || queue))) >= 33554432);
end $$;
