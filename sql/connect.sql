-- Our connections only: a role or database may default to another level.
set session characteristics as transaction isolation level read committed
