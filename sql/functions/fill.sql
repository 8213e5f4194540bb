create or replace function trunkline.fill(template text, queue text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Fills the holes of a template for one queue. {queue_}, {do_take_} and similar holes become the queue's name after
-- that prefix, quoted; the other holes become settings of the queue. A queue's name contains no quotes.
declare
    settings trunkline.queue;
    type regtype := trunkline.payload_type(queue);
    laned bool;
    keyed bool;
    due_rows text;
    heads text;
begin
    select * into strict settings from trunkline.queue q where q.name = queue;
    laned := settings.priorities > 1;
    keyed := settings.lanes > 0;
    -- The plans need no statistics: they always use the index and never scan the whole table.
    template := replace(template, '{planner}',
        'set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off '
        'set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan');
    -- The catalog's name, because bpchar would be "character", which is one character, and bit one bit. With its schema, because not every function
    -- sets a search_path.
    template := replace(template, '{type}', coalesce((
        select format('%I.%I', n.nspname, t.typname) from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.oid = type), ''));
    -- array_agg would flatten arrays, even under a domain.
    template := replace(template, '{payloads}', case when trunkline.is_array(type)
        then 'payloads[min(p.nr):max(p.nr)]' else 'array_agg(p.payload order by p.nr)' end);
    template := replace(template, '{own}', case when laned or keyed
        then 'coalesce(case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), q.*) end, ''{}'') '
             '|| jsonb_build_object(''lane'', q.lane::text' || case when keyed then ', ''keys'', q.keys' else '' end || ')'
        else 'case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), q.*) end' end);
    -- A queue with keys has additional columns. It is read along the lines of its lanes, ordered by places, which
    -- leases do not change.
    template := replace(template, '{own_g}', case when keyed
        then 'g.own || jsonb_build_object(''keys'', array[g.own -> ''keys'' ->> m.k]::text)' else 'g.own' end);
    template := replace(template, '{own_h}', case when keyed
        then 'h.own || jsonb_build_object(''keys'', array[h.own -> ''keys'' ->> m.k]::text)' else 'h.own' end);
    template := replace(template, '{keyed}', keyed::text);
    -- If keys have a rate, at most half a bucket of messages of one key is leased at a time, plus the refill during
    -- that time. A lane records since when its buckets have been filling.
    template := replace(template, '{key_rate}', case when settings.key_per_second is not null
        then '(select array[1 / {key_per_second}, {key_burst} / {key_per_second}, case when isfinite(h.empty_at) '
             'then greatest(extract(epoch from h.empty_at - clock_timestamp())::float8 + {key_burst} / {key_per_second}, 0) else 0 end] '
             'from trunkline.{lane_} h where h.lane = e.lane)' else 'null::float8[]' end);
    -- Is anything due in a lane? The condition is a range, because an equality would be hashed, for all lanes at once.
    template := replace(template, '{lane_due}',
        '(exists (select from trunkline.{queue_} q where q.lane = h.lane and q.line = '''' and (q.place, q.id + 0) >= (h.floor, 0) '
        'and q.place <= clock and q.due_at <= clock) '
        'or exists (select from trunkline.{line_} w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock))');
    template := replace(template, '{most_of_key}', case when settings.key_per_second is not null
        then ', greatest(least(ceil({key_burst} / 2 + {key_per_second} * extract(epoch from {lease}) / 16), 64), 1)::int' else '' end);
    template := replace(template, '{next_line}', case when settings.key_per_second is not null
        then '(select min(w.until) from trunkline.{lane_} h join trunkline.{line_} w on w.lane = h.lane '
             'where h.holder = holder and h.held_until > clock and w.until > clock),' else '' end);
    -- A key rests until as many handlers may have started as a worker can hold messages of the key, plus the contents
    -- of its bucket; without a rate it rests for a moment.
    template := replace(template, '{longest_rest}', case when settings.key_per_second is not null
        then 'least((64 + {key_burst}) / {key_per_second}, 31536000) * interval ''1 second''' else 'interval ''1 second''' end);
    template := replace(template, '{key_per_second}', coalesce(settings.key_per_second::text, 'null') || '::float8');
    template := replace(template, '{key_burst}', coalesce(settings.key_burst::text, 'null') || '::float8');
    template := replace(template, '{row_key}', case when keyed then 'q.keys[m.k + 1]' else 'null::text' end);
    template := replace(template, '{found_key}', case when keyed then 'q.keys[(message - q.id)::int + 1]' else 'null::text' end);
    template := replace(template, '{own_key}', case when keyed then '((q.own ->> ''keys'')::text[])[1]' else 'null::text' end);
    -- The due rows, locked. Along a lane no row is skipped, because rows behind it may have the same key: the query
    -- examines exactly as many rows as it locks.
    due_rows := 'trunkline.{queue_} q where {in_lane}({place}, q.id + 0) >= (due, id) and {place} <= until{and_due} '
                'order by {place}, q.id + 0 limit rows';
    heads := 'head as materialized (select q.ctid as tid, q.due_at, q.attempt, q.size, q.line from ' || due_rows || ')';
    template := replace(template, '{with_head}', case when keyed then 'with ' || heads else '' end);
    template := replace(template, '{head}', case when keyed then heads || ',' else '' end);
    template := replace(template, '{heads}', case when keyed then '(select count(*)::int from head)' else 'count(*)::int' end);
    template := replace(template, '{due_rows}', case when keyed
        then 'head h join trunkline.{queue_} q on q.ctid = h.tid '
             'where q.due_at = h.due_at and q.attempt = h.attempt and q.size = h.size and q.line = h.line for update of q skip locked'
        else due_rows || ' for update skip locked' end);
    template := replace(template, '{ordered}', (keyed and settings.per_key = 1)::text);
    template := replace(template, '{key_lanes}', settings.lanes::text);
    template := replace(template, '{first_lane}', settings.first_lane::text);
    template := replace(template, '{place}', case when keyed then 'q.place' else 'q.due_at' end);
    template := replace(template, '{and_due}', case when keyed then ' and q.due_at <= until and q.place <= bound' else '' end);
    -- A message whose lease ran out once may be innocent. It need not run alone yet if it has another attempt left in
    -- which it can.
    template := replace(template, '{alone}', case when keyed
        then '(apart > 0 and (apart < 3 or q.attempt - q.released > 1 or {max_attempts} < 3))' else '(apart > 0)' end);
    template := replace(template, '{mixed}', case when keyed then 'of_line = '''' and q.keys && lined' else 'false' end);
    template := replace(template, '{or_mixed}', case when keyed then ' or of_line = '''' and q.keys && lined' else '' end);
    template := replace(template, '{and_pure}', case when keyed then ' and not (of_line = '''' and q.keys && lined)' else '' end);
    template := replace(template, '{whole_keys}', case when keyed then 'whole_keys := r.keys; whole_line := r.line;' else '' end);
    template := replace(template, '{keys}', case when keyed then 'r.keys := whole_keys[start + 1 : stop]; r.line := case when r.keys[1] = any (lined) then r.keys[1] else whole_line end;' else '' end);
    template := replace(template, '{set_keys}', case when keyed then ', keys = r.keys, line = r.line' else '' end);
    template := replace(template, '{then_place}', case when keyed
        then ' place = case when due > clock_timestamp() then due else q.place end,' else '' end);
    template := replace(template, '{right_place}', case when keyed
        then ', place = case when q.enqueued_at > clock and q.place > clock then greatest(q.place - (q.enqueued_at - clock), clock) else q.place end' else '' end);
    template := replace(template, '{shift_place}', case when keyed
        then 'place = case when q.place <= began then q.place else greatest(l.due_at - passed, began + l.place * interval ''1 microsecond'') end,' else '' end);
    template := replace(template, '{shift_lines}', case when keyed
        then 'with lines as (update trunkline.{line_} l set until = l.until - passed where isfinite(l.until)) '
             'update trunkline.{lane_} h set held_until = h.held_until - passed, starts_until = h.starts_until - passed, empty_at = h.empty_at - passed' else 'null' end);
    template := replace(template, '{refuse_keys}', case when keyed then format('perform trunkline.refuse_keys(%L);', queue) else '' end);
    template := replace(template, '{lane_columns}', case
        when keyed then 'array[''lane'', ''line'', ''place'', ''keys'']' when laned then 'array[''lane'']' else 'array[]' end);
    -- A queue with priorities has an additional column, and a floor for each lane.
    template := replace(template, '{last_lane}', (settings.priorities - 1)::text);
    template := replace(template, '{of_lane}', case when laned then 'q.lane = l.lane and ' else '' end);
    template := replace(template, '{laned}', laned::text);
    template := replace(template, '{lanes}', settings.priorities::text);
    template := replace(template, '{head_start}', format('%L::interval', settings.head_start));
    template := replace(template, '{floors}', case when laned then 'timestamptz[]' else 'timestamptz' end);
    template := replace(template, '{no_floor}', case when laned
        then format('array_fill(''-infinity''::timestamptz, array[%s])', settings.priorities) else '''-infinity''' end);
    template := replace(template, '{lane}', case when laned then ', lane int, bound timestamptz'
                                                 when keyed then ', lane int, of_line text, lined text[], bound timestamptz' else '' end);
    template := replace(template, '{turn}', case when laned then ', turn.lane, turn.bound' else '' end);
    template := replace(template, '{in_lane}', case when laned then 'q.lane = lane and '
                                                    when keyed then 'q.lane = lane and q.line = of_line and ' else '' end);
    template := replace(template, '{bound}', case when laned then 'least(clock_timestamp(), bound)' else 'clock_timestamp()' end);
    template := replace(template, '{batch_priority}', case when laned then ', priority int default 0' else '' end);
    template := replace(template, '{lane_column}', case when laned then ', lane' else '' end);
    template := replace(template, '{priority}', case when laned then ', priority' else '' end);
    -- A queue with uniqueness has an additional table.
    template := replace(template, '{passed_keys}', case when settings.uniqueness
        then 'update trunkline.{unique_} u set until = u.until - passed, claimed_at = u.claimed_at - passed where u.until is not null' else 'null' end);
    template := replace(template, '{right_keys}', case when settings.uniqueness
        then 'update trunkline.{unique_} u set until = clock + (u.until - u.claimed_at), claimed_at = clock where u.key = any (array('
             'select a.key from trunkline.{unique_} a where a.claimed_at > clock for update skip locked))' else 'null' end);
    template := replace(template, '{row_priority}', case when laned then 'q.lane::int' else '0' end);
    template := replace(template, '{own_priority}', case when laned then 'coalesce((q.own ->> ''lane'')::int, 0)' else '0' end);
    template := replace(template, '{literal}', quote_literal(queue));
    template := replace(template, '{channel}', quote_literal('trunkline.' || queue));
    -- The present contents of the bucket. A time in the future was written while a clock was ahead. A bucket with
    -- impossible values, from a manual change, counts as empty or full.
    template := replace(template, '{tokens}', 'least({burst}, greatest(b.tokens, 0) '
        '+ {per_second} * extract(epoch from clock - greatest(least(b.filled_at, clock), ''epoch'')))');
    template := replace(template, '{paused}', settings.paused::text);
    template := replace(template, '{limited}', (coalesce(settings.max_leased, settings.per_second) is not null)::text);
    template := replace(template, '{max_leased}', coalesce(settings.max_leased::text, 'null::int'));
    template := replace(template, '{per_second}', coalesce(settings.per_second::text, 'null') || '::float8');
    template := replace(template, '{burst}', coalesce(settings.burst::text, 'null') || '::float8');
    template := replace(template, '{max_attempts}', settings.max_attempts::text);
    template := replace(template, '{max_batch}', settings.max_batch::text);
    template := replace(template, '{lease}', format('%L::interval', settings.lease));
    return regexp_replace(template, '[{]([a-z_]+_)[}]', '"\1' || queue || '"', 'g');
end $$;
