-- Stores the text that every queue's objects are created from; install_queue fills its holes.
insert into trunkline.template (name, kind, text) select * from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[]))
