-- Runs on the caller's connection: retries locked messages for a tenth of a second, and then skips them.
select id from trunkline.cancel($1, $2) id
