"""Checks that every code block of the pages is run, or is part of an example that is run."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trunkline
from psycopg.conninfo import conninfo_to_dict
from trunkline.testing import database

ROOT = Path(__file__).parent.parent.parent
#: The pages whose blocks run unchanged, one after the other, in an empty database.
RUN = ["transactions", "coming-from", "running"]
#: The pages whose blocks are in examples, which have their own tests.
SHOWN = {"fastapi": "fastapi_app.py fastapi_one_process.py", "flask": "flask_app.py", "django": "django_site"}


def page(name: str) -> str:
    return (ROOT / name if name.endswith(".md") else ROOT / "docs" / f"{name}.md").read_text()


def blocks(name: str) -> list[tuple[int, str]]:
    """Returns the Python blocks of a page, each with its line number."""
    text = page(name)
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text[: one.start()].count("\n") + 2, one.group(1)) for one in found]


async def run(name: str, module: types.ModuleType) -> int:
    ran = 0
    for line, block in blocks(name):
        code = compile("\n" * (line - 1) + block, f"docs/{name}.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        made: Any = eval(code, module.__dict__)  # noqa: S307  the page's own program
        if inspect.iscoroutine(made):
            await made
        ran += 1
    return ran


@pytest.mark.parametrize("name", RUN)
def test_a_page_runs_from_its_first_block_to_its_last(name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    assert asyncio.run(asyncio.wait_for(run(name, module), 120)) >= 2


def test_the_readme_runs_from_its_first_block_to_its_last(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses the database that the README names, on the server that the environment names."""
    place = conninfo_to_dict(url)
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("create database app")
    for variable, word in {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user"}.items():
        monkeypatch.setenv(variable, str(place.get(word) or ""))
    module: Any = types.ModuleType("mails")
    monkeypatch.setitem(sys.modules, "mails", module)
    try:
        assert asyncio.run(asyncio.wait_for(run("README.md", module), 120)) == 3
        asyncio.run(asyncio.wait_for(_called(module), 120))
        module.test_who_signs_up_is_welcomed(database())
        assert asyncio.run(asyncio.wait_for(_left(module), 120)) == 999
    finally:
        module.app.close()


async def _left(module: Any) -> int:
    """Returns the number of remaining messages. One of a thousand was consumed."""
    db = await trunkline.Db.connect("postgres:///app")
    return (await (await db.queue("letters", module.Mail)).stats()).messages


async def _called(module: Any) -> None:
    """Runs the functions of the first two blocks."""
    await module.main()
    await module.letters()


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_page_shows_stands_in_its_example(name: str) -> None:
    files = [ROOT / "examples" / of for of in SHOWN[name].split()]
    sources = [path for of in files for path in ([of] if of.is_file() else sorted(of.rglob("*.py")))]
    texts = [source.read_text() for source in sources]
    shown = blocks(name)
    assert len(shown) > 2
    for line, block in shown:
        assert any(block in text for text in texts), f"docs/{name}.md:{line} is in no example"


@pytest.mark.parametrize("name", ["README", *RUN, *SHOWN])
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", re.sub(r"```.*?```", "", page(name), flags=re.DOTALL))
    leads_out = [link for link in links if link.startswith("../../../")]
    if not (ROOT.parent.parent / "docs").exists():
        links = [link for link in links if link not in leads_out]  # only this folder exists
    missing = [link for link in links if not (ROOT / "docs" / link).exists()]
    assert not missing


def test_every_page_is_listed_and_tested() -> None:
    there = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert there == {"README", *RUN, *SHOWN}
    assert all(f"({name}.md)" in page("README") for name in there - {"README"})
