-- Stores the templates of the objects of queues; install_queue fills their holes.
insert into trunkline.template (part, name, text) select * from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[]))
