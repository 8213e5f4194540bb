create or replace function trunkline.more_lanes(queue text, lanes int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives a queue with keys more partitions, for trunkline.alter_queue. Each existing partition is divided into several,
-- which inherit its holder, its floor and its other state. So a running worker keeps its keys. Rows with keys of
-- several partitions are split. The partitions get new numbers, so that a row from a program with the old partitions
-- can be recognized (see trunkline.keep_place).
#variable_conflict use_variable
declare
    now_is trunkline.queue;
    first int;
    rows text := 'queue_' || queue;
    held text := 'lane_' || queue;
    lines text := 'line_' || queue;
begin
    select * into strict now_is from trunkline.queue q where q.name = queue;
    if now_is.lanes = 0 then
        raise exception 'queue % has no partitions: its messages have no keys', quote_literal(queue)
            using errcode = 'feature_not_supported', hint = 'Create a queue with trunkline.create_queue(..., partitions => 64).';
    elsif lanes < now_is.lanes or lanes % now_is.lanes > 0 then
        raise exception 'queue % has % partitions, and cannot have %', quote_literal(queue), now_is.lanes, lanes
            using errcode = 'invalid_parameter_value', hint = format('Pass a multiple of %s, up to 256: each partition falls into several.', now_is.lanes);
    end if;
    first := now_is.first_lane + now_is.lanes;
    perform trunkline.lock_partitions(queue);
    execute format('drop trigger keep_place on trunkline.%I', rows);
    execute format('alter table trunkline.%I drop constraint lane', rows);
    perform trunkline.sort_lanes(queue, lanes, first);
    execute format('alter table trunkline.%I add constraint lane check (lane between %s and %s)', rows, first, first + lanes - 1);
    execute format('insert into trunkline.%1$I (lane, holder, held_until, wanted_until, served_at, floor, starts_until, empty_at)
                    select $1 + n, h.holder, h.held_until, h.wanted_until, h.served_at, h.floor, h.starts_until, h.empty_at
                    from generate_series(0, $2 - 1) n join trunkline.%1$I h on h.lane = $3 + n %% $4', held)
        using first, lanes, now_is.first_lane::int, now_is.lanes;
    execute format('delete from trunkline.%I h where h.lane >= -$1 and h.lane < $1', held) using first;
    execute format('insert into trunkline.%I (lane) select -1 - n from generate_series($1, $1 + $2 - 1) n', held) using first, lanes; -- see create_queue
    execute format('update trunkline.%I l set lane = $1 + trunkline.lane_of(l.key, $2)', lines) using first, lanes;
    execute format('create trigger keep_place before insert on trunkline.%I for each row execute function trunkline.keep_place(%s, %s)',
                   rows, first, lanes);
    update trunkline.queue q set lanes = lanes, first_lane = first where q.name = queue;
end $$;
