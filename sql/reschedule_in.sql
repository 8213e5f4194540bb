-- As cancel_in; the notification goes out with the caller's commit.
select id from trunkline.reschedule($1, $2, clock_timestamp() + $3::float8 * interval '1 second') id
