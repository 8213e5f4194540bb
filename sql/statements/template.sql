-- Stores the text that the objects of queues are created from; install_queue fills its holes.
insert into trunkline.template (part, name, text) select * from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[]))
