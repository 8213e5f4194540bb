-- A reserved word of SQL would have to be quoted everywhere.
select pg_catalog.quote_ident($1) operator(pg_catalog.=) $1
