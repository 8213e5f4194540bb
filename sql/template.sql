-- What every queue has; install_queue fills its holes.
insert into trunkline.template (name, kind, text) select * from unnest($1::text[], $2::text[], $3::text[])
