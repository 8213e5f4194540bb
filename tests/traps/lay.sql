-- Lays a trap for each function, operator and aggregate of the catalog. A schema in front of `pg_catalog` contains objects with the same names and parameters.
-- Calling one of them raises an error. Qualified names, and functions with their own path, avoid the traps.
create schema trap;
grant usage on schema trap to public;
set check_function_bodies = off;
set client_min_messages = error;
do $$
declare
    f record;
    o record;
    laid int := 0;
    body text;
begin
    for f in
        select p.oid, p.proname, p.proretset, p.prokind, pg_get_function_identity_arguments(p.oid) as parameters, p.prorettype,
               (select string_agg(format_type(t, null), ', ' order by nr) from unnest(p.proargtypes) with ordinality a(t, nr)) as types
        from pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('f', 'a') and p.provariadic = 0 and p.proargmodes is null
    loop
        body := format(' language plpgsql as %L', format('begin raise exception %L, %L; end', 'trapped by %', f.proname));
        begin
            if f.prokind = 'f' then
                execute format('create function trap.%I(%s) returns %s %s', f.proname, coalesce(f.types, ''),
                               case when f.proretset then 'setof ' else '' end || format_type(f.prorettype, null),
                               body);
            else
                execute format('create function trap.step_%s(bigint%s) returns bigint %s', f.oid, coalesce(', ' || f.types, ''),
                               body);
                execute format('create function trap.end_%s(bigint) returns bigint %s', f.oid, body);
                execute format('create aggregate trap.%I(%s) (sfunc = trap.step_%s, stype = bigint, finalfunc = trap.end_%s)', f.proname, coalesce(f.types, '*'), f.oid, f.oid);
            end if;
            laid := laid + 1;
        exception when others then
            null; -- skips functions with types that PL/pgSQL does not accept
        end;
    end loop;
    for o in
        select p.oid, p.oprname, nullif(p.oprleft, 0) as l, p.oprright as r, p.oprresult as result from pg_operator p
        where p.oprnamespace = 'pg_catalog'::regnamespace
    loop
        body := format(' language plpgsql as %L', format('begin raise exception %L, %L; end', 'trapped by %', o.oprname));
        begin
            execute format('create function trap.operator_%s(%s) returns %s %s', o.oid, concat_ws(', ', format_type(o.l, null), format_type(o.r, null)),
                           format_type(o.result, null), body);
            execute format('create operator trap.%s (%s rightarg = %s, function = trap.operator_%s)', o.oprname,
                           'leftarg = ' || format_type(o.l, null) || ',', format_type(o.r, null), o.oid);
            laid := laid + 1;
        exception when others then
            null;
        end;
    end loop;
    if laid < 2500 then
        raise exception 'only % traps are laid', laid;
    end if;
end $$;
-- Creates better matches than the catalog's own polymorphic or variadic functions. They match even if `pg_catalog` comes first in the path.
create function trap.unnest(text[]) returns setof text language plpgsql as 'begin raise exception ''trapped by unnest''; end';
create function trap.unnest(bigint[]) returns setof bigint language plpgsql as 'begin raise exception ''trapped by unnest''; end';
create function trap.unnest(float8[]) returns setof float8 language plpgsql as 'begin raise exception ''trapped by unnest''; end';
create function trap.format(text, text) returns text language plpgsql as 'begin raise exception ''trapped by format''; end';
create function trap.format(text, text, text) returns text language plpgsql as 'begin raise exception ''trapped by format''; end';
create function trap.format(text, name) returns text language plpgsql as 'begin raise exception ''trapped by format''; end';
create function trap.jsonb_build_object(text, text) returns jsonb language plpgsql as 'begin raise exception ''trapped by jsonb_build_object''; end';
create function trap.substr(name, int) returns text language plpgsql as 'begin raise exception ''trapped by substr''; end';
create function trap.float_and_int(float8, int) returns bool language plpgsql as 'begin raise exception ''trapped by >=''; end';
create operator trap.>= (leftarg = float8, rightarg = int, function = trap.float_and_int);
create operator trap.> (leftarg = float8, rightarg = int, function = trap.float_and_int);
create type trap.text as (a int);
create type trap.jsonb as (a int);
create type trap.float8 as (a int);
create type trap.timestamptz as (a int);
create type trap.tid as (a int);
create type trap.regclass as (a int);
reset check_function_bodies;
reset client_min_messages;
