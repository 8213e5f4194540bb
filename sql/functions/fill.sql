create or replace function trunkline.fill(template text, queue text, type text default null) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
    set extra_float_digits = 1 as $$
-- Fills the holes of a template for one queue. {queue_}, {do_take_} and similar holes become the
-- queue's name after that prefix, quoted. The other holes become literals: a setting of the queue,
-- or null. A queue's name contains no quotes, and rates keep all digits in every session. type: the
-- payload's type; if it is null, its name and schema are read from the catalog. format_type would
-- turn bpchar into "character", which means one character. It also depends on the search_path, which
-- not every function sets.
#variable_conflict use_variable
declare
    hole record;
begin
    for hole in
        select h.name, coalesce(h.literal, 'null') as literal from trunkline.queue q, lateral (values
            ('literal', quote_literal(q.name)),
            ('channel', quote_literal('trunkline.' || q.name)),
            ('type', coalesce(type, (select format('%I.%I', n.nspname, t.typname) from pg_type t join pg_namespace n on n.oid = t.typnamespace
                                     where t.oid = trunkline.payload_type(q.name)))),
            ('max_attempts', q.max_attempts::text),
            ('max_batch', q.max_batch::text),
            ('lease', format('interval %L', q.lease)),
            ('paused', q.paused::text),
            ('limited', (coalesce(q.max_leased, q.per_second) is not null)::text),
            ('max_leased', q.max_leased::text),
            ('per_second', q.per_second::text),
            ('burst', q.burst::text),
            ('unique', q.uniqueness::text),
            ('own_columns', quote_literal(case when q.lanes > 0 then '{lane,line,place,keys}' when q.priorities > 1 then '{lane}' else '{}' end)),
            ('lanes', q.priorities::text),
            ('head_start', format('interval %L', q.head_start)),
            ('keyed', (q.lanes > 0)::text),
            ('key_lanes', q.lanes::text),
            ('first_lane', q.first_lane::text),
            ('key_per_second', q.key_per_second::text),
            ('key_burst', q.key_burst::text)) h(name, literal)
        where q.name = queue
    loop
        template := replace(template, '{' || hole.name || '}', hole.literal);
    end loop;
    return regexp_replace(template, '[{]([a-z_]+_)[}]', '"\1' || queue || '"', 'g');
end $$;
