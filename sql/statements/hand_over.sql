-- Nothing is stored and nothing is flushed: the message travels inside the notification.
select trunkline.hand_over($1, $2, $3)
