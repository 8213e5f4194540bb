-- Whether what is done can be written down.
select has_table_privilege('trunkline.audit', 'insert')
