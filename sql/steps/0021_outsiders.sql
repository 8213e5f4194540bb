-- Constraints refuse values that no program writes and that would cause errors or alarms for other roles.
drop function if exists trunkline.drop_queue(text);

delete from trunkline.worker; -- deletes at most an hour of reports
alter table trunkline.worker
    add constraint worker_process check (process > 0),
    add constraint worker_version check (length(version) <= 100),
    add constraint worker_started_at check (isfinite(started_at)),
    add constraint worker_numbers check (seconds between 0 and 1e9 and handled between 0 and 1e15 and failed between 0 and 1e15
                                         and running between 0 and 1e15 and hands between 0 and 1e15),
    add constraint worker_calls check (p50 between 0 and 1e9 and p99 between 0 and 1e9);

update trunkline.floor set reached = '-infinity' where reached = 'infinity';
update trunkline.floor set shown = null where not isfinite(shown);
alter table trunkline.floor add constraint floor_times check (reached < 'infinity' and isfinite(shown));

update trunkline.schedule set next_at = clock_timestamp(), placed = false where next_at = '-infinity';
update trunkline.schedule set owed_at = null where not isfinite(owed_at);
alter table trunkline.schedule add constraint schedule_times check (next_at > '-infinity' and isfinite(owed_at));

do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue where uniqueness loop
        execute format('delete from trunkline.%I where not (isfinite(until) and until >= ''0001-01-01 00:00:00+00'' and claimed_at < ''6000-01-01 00:00:00+00'')', 'unique_' || q.name);
        execute format('alter table trunkline.%I add constraint kept check (isfinite(until) and until >= ''0001-01-01 00:00:00+00'' and claimed_at < ''6000-01-01 00:00:00+00'')',
                       'unique_' || q.name);
    end loop;
    -- Every entry of the audit names a queue, also for an action on a schedule.
    drop policy acts on trunkline.audit;
    execute format('create policy acts on trunkline.audit for insert with check (%s)',
                   'case when queue is not null then has_table_privilege(to_regclass(format(''trunkline.%I'', ''queue_'' || queue))::oid, ''delete'') else false end');
end $$;
