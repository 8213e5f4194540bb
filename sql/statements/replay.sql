-- Makes dead letters due now, under the same ids, with a fresh set of attempts. If the ids are null, replays the oldest, up to the limit.
select id from trunkline.{do_replay_}($1, $2) id
