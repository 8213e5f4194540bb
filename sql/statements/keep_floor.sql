-- For processes and sessions that begin later.
select trunkline.keep_floor($1, $2)
