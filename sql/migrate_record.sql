-- With the step, in its transaction.
insert into trunkline.migration (version, name) values ($1, $2)
