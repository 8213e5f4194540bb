-- After a rollback there is no lease to end: the messages stand where they stood, under the attempt they had.
select id, size, attempt from trunkline.{do_charge_}($1, $2, $3, array(select d * interval '1 second' from unnest($4::float8[]) d), $5)
