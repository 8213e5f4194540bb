"""Django drops its test databases, of whatever kind, although applications have used them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

BEGIN = """
import json, os, django
from django.conf import settings

settings.configure(DATABASES={"default": json.loads(os.environ["DATABASE"])}, INSTALLED_APPS=["trunkline.django"])
django.setup()

from django.db import connection
from trunkline.django import App

app = App()
connection.creation.create_test_db(verbosity=0, autoclobber=True)
"""

ON_SQLITE = """
assert os.path.exists("tested")
connection.creation.destroy_test_db("own", verbosity=0)
print("left" if os.path.exists("tested") else "dropped")
"""

CUT = """
import psycopg

with connection.cursor() as cursor:
    cursor.execute("select pg_backend_pid()")
    (process,) = cursor.fetchone()
with psycopg.connect(os.environ["URL"], autocommit=True) as sql:
    sql.execute("select pg_terminate_backend(%s, 30000)", [process])
connection.creation.destroy_test_db(settings.DATABASES["default"]["NAME"], verbosity=0)
"""


def program(text: str, database: dict[str, object], url: str, folder: Path) -> str:
    env = {**os.environ, "URL": url, "DATABASE": json.dumps(database)}
    ran = subprocess.run([sys.executable, "-c", BEGIN + text], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_database_of_another_kind_is_dropped(url: str, tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "own", "TEST": {"NAME": "tested"}}
    assert program(ON_SQLITE, database, url, tmp_path) == "dropped\n"


def test_database_is_dropped_although_its_connection_was_cut(url: str, tmp_path: Path, count: Callable[[str], int]) -> None:
    place = conninfo_to_dict(url)
    names = {"HOST": place["host"], "PORT": place["port"], "USER": place["user"], "NAME": place["dbname"]}
    tested = f"tested_{place['dbname']}"
    program(CUT, {"ENGINE": "django.db.backends.postgresql", **names, "TEST": {"NAME": tested}}, url, tmp_path)
    assert count(f"select from pg_database where datname = '{tested}'") == 0
