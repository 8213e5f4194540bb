-- Fills the holes of a template for one queue: {queue_}, {do_take_} and the like become the queue's name behind that
-- prefix, quoted; the others are its settings. A queue's name has no quotes in it.
create or replace function trunkline.fill(template text, queue text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
declare
    settings trunkline.queue;
    type regtype := trunkline.payload_type(queue);
begin
    select * into strict settings from trunkline.queue q where q.name = queue;
    -- Plans that need no statistics: always the index, never the table from end to end.
    template := replace(template, '{planner}',
        'set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off '
        'set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan');
    -- Without -1, bpchar would be "character", which is one character, and bit one bit.
    template := replace(template, '{type}', coalesce(format_type(type, -1), ''));
    -- array_agg would flatten arrays, even under a domain.
    template := replace(template, '{payloads}', case when trunkline.is_array(type)
        then 'payloads[min(p.nr):max(p.nr)]' else 'array_agg(p.payload order by p.nr)' end);
    template := replace(template, '{own}',
        'case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), q.*) end');
    template := replace(template, '{literal}', quote_literal(queue));
    template := replace(template, '{channel}', quote_literal('trunkline.' || queue));
    template := replace(template, '{max_attempts}', settings.max_attempts::text);
    template := replace(template, '{max_batch}', settings.max_batch::text);
    template := replace(template, '{lease}', format('%L::interval', settings.lease));
    return regexp_replace(template, '[{]([a-z_]+_)[}]', '"\1' || queue || '"', 'g');
end $$;
