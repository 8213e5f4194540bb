"""Runs the processes of a worker of Django's example, however the worker was started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .conftest import SITE

ENQUEUE = """
from django.db import connection
from shop.models import Order
from shop.tasks import *
queue(connection, confirm).enqueue(Confirmation(Order.objects.create(mail="ada@example.org").pk))
"""

#: The program of a package. It can be imported only from the package's folder.
OF_A_PACKAGE = """
import sys
from django.core.management import execute_from_command_line
import control.settings_of_the_host

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
"""

WRAPPER = """
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "trunkline_worker", "--drain", "--processes", "2"])
"""

WORK = ["trunkline_worker", "--drain", "--processes", "2"]


@pytest.mark.parametrize("command", [["-m", "django", *WORK], ["-m", "control", *WORK], ["-m", "control.manage", *WORK], ["wrapper.py"]])
def test_processes_start_like_the_program_that_starts_them(command, shop_env, manage, count, tmp_path):
    manage("shell", "--command", ENQUEUE)
    (tmp_path / "wrapper.py").write_text(WRAPPER)
    (tmp_path / "control").mkdir()
    for name, text in {"__init__": "", "settings_of_the_host": "", "manage": OF_A_PACKAGE, "__main__": OF_A_PACKAGE}.items():
        (tmp_path / "control" / f"{name}.py").write_text(text)
    env = {**shop_env, "DJANGO_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": os.pathsep.join([str(SITE), *sys.path])}
    ran = subprocess.run([sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "new process starts" not in ran.stderr
    assert count("select from shop_order where is_confirmed") == 1


ISOLATED = """
from shop.models import Order
from trunkline.django import App

app = App()

@app.task(place="process")
def isolated(number: int) -> None:
    Order.objects.create(mail=f"process-{number}@example.org")
"""

IN_PROCESS = """
import asyncio, sys
sys.path.insert(0, PLACE)
from own_tasks import app, isolated

async def story():
    await app.setup()
    await isolated.enqueue(1)
    return await app.drain(processes=1)

print(asyncio.run(story()).done, "done")
"""


def test_handlers_in_processes_may_import_models(manage, count, tmp_path):
    (tmp_path / "own_tasks.py").write_text(ISOLATED)
    assert "1 done" in manage("shell", "--command", IN_PROCESS.replace("PLACE", repr(str(tmp_path))))
    assert count("select from shop_order where mail = 'process-1@example.org'") == 1


OWN_TEST = """
import asyncio
from django.test import TransactionTestCase
from own_tasks import app, isolated
from shop.models import Order

class Isolated(TransactionTestCase):
    def test_a_process_uses_the_test_database(self):
        async def story():
            await app.setup()
            await isolated.enqueue(1)
            return await app.drain(processes=1)

        self.assertEqual(asyncio.run(story()).done, 1)
        self.assertEqual(Order.objects.filter(mail="process-1@example.org").count(), 1)
"""


def test_handlers_in_processes_use_the_test_database(manage, count, tmp_path):
    (tmp_path / "own_tasks.py").write_text(ISOLATED)
    (tmp_path / "test_own.py").write_text(OWN_TEST)
    said = manage("test", str(tmp_path), "--noinput")
    assert "Ran 1 test" in said and "OK" in said and "Destroying test database" in said
    assert count("select from shop_order") == 0
