-- Said before a look, for its transaction alone: one core at most, so that the time it took is what it cost; not for ever; and where somebody has locked the
-- queue against readers, the other queues do not wait for that.
select set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),
       set_config('lock_timeout', '100ms', true), set_config('statement_timeout', $1, true)
