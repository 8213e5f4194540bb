-- Reports a notification queue that fills up. The server keeps notifications until its slowest listener has read them;
-- once there is no room, every enqueue fails.
select 'wrong', null::text,
       format('the notification queue is %s %% full', round(100 * pg_notification_queue_usage()::numeric, 1)),
       (select min(a.xact_start) from pg_stat_activity a where a.state like 'idle in transaction%'),
       'A session that listens has been in a transaction for a long time, and receives no notifications until it ends. Once the queue is full, transactions that notify fail at their commit, including enqueues.',
       coalesce((select format('select pg_terminate_backend(%s); -- the session with the oldest idle transaction: check first that it listens', a.pid) from pg_stat_activity a
                 where a.state like 'idle in transaction%' order by a.xact_start limit 1),
                'select pid, state, xact_start, query from pg_stat_activity order by xact_start;')
where pg_notification_queue_usage() > 0.05
