create or replace function trunkline.{do_peek_}(after_due timestamptz, after_id bigint, n bigint) returns setof trunkline.{queue_}
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.page_by_due.
    select p.* from trunkline.page_by_due({literal}, null::trunkline.{queue_}, after_due, after_id, n) p;
$f$;
