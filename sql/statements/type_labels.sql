-- Returns the labels of an enum, in order.
select e.enumlabel from pg_catalog.pg_enum e where e.enumtypid operator(pg_catalog.=) $1 order by e.enumsortorder
