-- Due now with attempts forgiven, under the same id; null replays the oldest of all, up to the limit.
select id from trunkline.{do_replay_}($1, $2) id
