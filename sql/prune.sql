-- By age, along the index.
with gone as (
    delete from trunkline.{archive_} where archived_at < clock_timestamp() - $1 * interval '1 second' returning id)
select count(*) from gone
