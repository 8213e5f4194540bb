-- Returns the values of columns that users added, of the messages with these ids, as texts by name.
select id, columns::pg_catalog.text from trunkline.own_columns($1, $2)
