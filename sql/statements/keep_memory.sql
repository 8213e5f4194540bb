-- glibc gives the free end of a process's heap back to the system once it is 128 KiB, and fetches it again for the next statement: a tenth of
-- what a server process spends on rows of some hundred messages. Once a block of a mebibyte was given back, it keeps up to two (mallopt(3),
-- M_MMAP_THRESHOLD). Other allocators are not moved by this. Made of pieces of a kibibyte, in 0.9 ms; of single letters it would take 4.5.
select pg_catalog.octet_length(pg_catalog.repeat(pg_catalog.repeat(' ', 1024), 1024))
