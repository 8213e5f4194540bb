create or replace function trunkline.build_dispatch(patience text) returns bool
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set check_function_bodies = off
    set client_min_messages = warning set lock_timeout = '10s' as $$
-- Gives both variants of trunkline.enqueue a branch for each queue. A branch calls the queue's
-- function by its name, because a call by EXECUTE takes longer than the insert of a row. This
-- function is called whenever a queue is created or dropped. If another transaction that creates or drops a queue does
-- not end within `patience`, the function returns false and changes nothing. A queue without a
-- branch is called by EXECUTE. A branch without a queue would be an error, so drop_queue must
-- succeed.
declare
    branches text;
    variant regprocedure;
begin
    perform set_config('lock_timeout', patience, true);
    lock table trunkline.template in share row exclusive mode; -- one session at a time; otherwise only a migration changes this table
    -- Sixteen queues share a comparison, so that even hundreds of queues need few comparisons.
    select '        ' || string_agg(format(E'if queue operator(pg_catalog.<=) %L collate pg_catalog."C" then\n            %s            end if;\n', g.last, g.text),
                                    '        els' order by g.last) || '        end if;'
    into branches
    from (select max(q.name collate "C") as last, string_agg(
                     format(E'if queue operator(pg_catalog.=) %L then\n                id := trunkline.%I(payload);\n', q.name, 'do_enqueue_' || q.name),
                     '            els' order by q.name collate "C") as text
          from (select q.name, row_number() over (order by q.name collate "C") as nr from trunkline.queue q
                where to_regproc(format('trunkline.%I', 'do_enqueue_' || q.name)) is not null) q
          group by (q.nr - 1) / 16) g;
    foreach variant in array array[
            'trunkline.enqueue(text, anyelement, interval, jsonb, int, text, interval, bool, text)'::regprocedure,
            'trunkline.enqueue(text, text, interval, jsonb, int, text, interval, bool, text)'::regprocedure] loop
        execute regexp_replace(pg_get_functiondef(variant), '(-- Branches for the queues[^\n]*\n).*(        -- Other queues:)',
                               '\1' || coalesce(branches || E'\n', '') || '\2');
    end loop;
    return true;
exception when lock_not_available or deadlock_detected then
    return false;
end $$;
