-- do_retry_ and do_charge_ report which messages became dead letters, and do_holdlane_ takes the time of its caller. So they are dropped, and created
-- again from their files.
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue loop
        execute format('drop function if exists trunkline.%I(bigint[], int[], int[], interval[], text[])', 'do_retry_' || q.name);
        execute format('drop function if exists trunkline.%I(bigint[], int[], int[], interval[], text[])', 'do_charge_' || q.name);
        execute format('drop function if exists trunkline.%I(int[], bigint, timestamptz, timestamptz)', 'do_holdlane_' || q.name);
    end loop;
end $$;
