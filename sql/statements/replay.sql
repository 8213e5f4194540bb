-- Makes dead letters of a queue due now, under the same ids, with a fresh set of attempts. If the ids are null, replays the oldest, up to the limit.
select id from trunkline.replay_some($1, $2, $3) id
