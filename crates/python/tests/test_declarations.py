"""A declaration that no worker could run is refused immediately, and not when its messages
arrive."""

from __future__ import annotations

import functools
from datetime import date, timedelta
from typing import Any

import pytest
import trunkline
from trunkline.sync import Db

NAN, INFINITE = float("nan"), float("inf")


async def plain(number: int) -> None: ...


def blocking(number: int) -> None: ...


async def named(*, number: int) -> None: ...


async def options(**number: int) -> None: ...


async def behind(context: trunkline.Context, number: int) -> None: ...


async def positional(number: int, context: trunkline.Context, /) -> None: ...


def within() -> Any:
    def local(number: int) -> None: ...

    return local


OPTIONS: list[dict[str, Any]] = [
    *({"timeout": value} for value in (0, -1, NAN, INFINITE, timedelta(seconds=-1))),
    *({"lease": value} for value in (0, -1, NAN, INFINITE, timedelta(days=366))),
    *({"weight": value} for value in (0, -1, 1.5, "x", 2**40)),
    *({"batch": value} for value in (0, -1, 1.5, "x", True)),
    *({"isolate_after_crash": value} for value in (0, 1, None, "no")),
    *({"place": value} for value in ("moon", "")),
    *({"retry": trunkline.Backoff(max_attempts=value)} for value in (0, -1, 1.5)),  # type: ignore[arg-type]
    *({name: value} for name in ("max_attempts", "max_batch", "priorities", "per_key") for value in (-1, 0, 1.5, True)),
    *({"partitions": value} for value in (-1, 1.5)),
    *({"retry": trunkline.Fixed(1, max_attempts=value)} for value in (0, -1)),
    {"retry": trunkline.Backoff},
]


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_options_out_of_bounds_are_refused_at_the_declaration(option: dict[str, Any]) -> None:
    app = trunkline.App()
    with pytest.raises((TypeError, ValueError)) as refused:
        app.task(queue="mails", **option)(plain)
    assert "failed to extract" not in str(refused.value)
    assert not app.tasks


def test_a_task_without_parentheses_is_refused() -> None:
    app: Any = trunkline.App()
    with pytest.raises(TypeError, match=r"write @app\.task\(\) above the function"):
        app.task(plain)
    assert not app.tasks


@pytest.mark.parametrize("handler", [named, options, behind], ids=lambda of: of.__name__)
def test_a_handler_that_takes_no_first_argument_is_refused(handler: Any) -> None:
    with pytest.raises(TypeError, match="first argument"):
        trunkline.App().task(queue="mails")(handler)


def test_a_context_that_is_positional_only_is_refused() -> None:
    with pytest.raises(TypeError, match="positional-only context: remove the `/`"):
        trunkline.App().task(queue="mails")(positional)


def test_what_no_other_process_finds_is_refused() -> None:
    with pytest.raises(TypeError, match="within another function"):
        trunkline.App().task(queue="mails", place="process")(within())
    trunkline.App().task(queue="mails", place="process")(blocking)


@pytest.mark.parametrize("verb", ["run", "drain"])
@pytest.mark.parametrize(
    "option",
    [{"concurrency": 0}, {"concurrency": -1}, {"concurrency": 1.5}, {"processes": 0}, {"shutdown_after": NAN}, {"shutdown_after": -1}],
    ids=str,
)
def test_options_of_a_worker_are_refused_at_the_call(verb: str, option: dict[str, Any]) -> None:
    app = trunkline.App()
    app.task(queue="mails")(plain)
    with pytest.raises((TypeError, ValueError)):
        getattr(app, verb)(**option)


def test_texts_that_are_none_are_named(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int, uniqueness=True)
    queue = db.queue("numbers", int)
    draft: Any = queue.draft(1)
    for what, made in [
        ("a key", lambda: draft.key(5)),
        ("a unique key", lambda: draft.unique(b"x")),
        ("a metadata value for 'a'", lambda: draft.metadata({"a": 1})),
        ("a metadata name", lambda: draft.metadata({1: "a"})),
    ]:
        with pytest.raises(TypeError, match=f"^{what} must be a str, not "):
            made().enqueue()
    wrong: Any = 5
    for end in (lambda: queue.retry([], error=wrong), lambda: queue.bury([], wrong)):
        with pytest.raises(TypeError, match="must be a str, not 5"):
            end()
    for at in (lambda: draft.at(date(2030, 1, 1)), lambda: queue.reschedule(1, date(2030, 1, 1))):
        with pytest.raises(TypeError, match="is not a datetime"):
            at()
    consumer = queue.consumer()
    for n in (-1, 2**63):
        for verb in (queue.take, queue.lease, queue.peek, lambda n: queue.dead_letters(n=n), lambda n: queue.archived(n=n), consumer.take, consumer.lease):
            with pytest.raises(ValueError, match="^n must be from 0 to"):
                verb(n)
    with pytest.raises(TypeError, match="^n must be a whole number, not 1.5"):
        queue.take(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^max_attempts must be from 1"):
        db.create_queue("more", int, max_attempts=-1)
    with pytest.raises(ValueError, match="^max_leased must be from 1"):
        db.limit_queue("numbers", max_leased=-1)
    with pytest.raises(TypeError, match="'poll', or the time between polls, not"):
        queue.consumer(wait=[1])  # type: ignore[arg-type]
    assert queue.consumer(wait=timedelta(milliseconds=5)).take(1, within=0) == []
    with pytest.raises(ValueError, match="guarantee"):
        queue.consumer(guarantee="exactly once")  # type: ignore[arg-type]
    assert queue.stats().messages == 0


class Sends:
    """A callable object."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def __call__(self, text: str) -> None:
        self.got.append(text)

    def send(self, text: str) -> None:
        self.got.append(text)


class SendsLater(Sends):
    async def __call__(self, text: str) -> None:  # type: ignore[override]
        self.got.append(text)


def test_partial_functions_and_callable_objects_are_tasks(url: str, run: Any) -> None:
    app, got = trunkline.App(url), list[str]()

    def noted(prefix: str, text: str, context: trunkline.Context) -> None:
        got.append(f"{prefix} {text} {context.queue}")

    async def later(prefix: str, text: str) -> None:
        got.append(f"{prefix} {text}")

    one, two = Sends(), SendsLater()
    tasks: list[trunkline.Task[str]] = [
        app.task()(functools.partial(noted, "partly")),
        app.task()(functools.partial(functools.partial(later), "later")),
        app.task(queue="sends")(one),
        app.task(queue="sends_later")(two),
        app.task(queue="method")(one.send),
    ]
    assert [task.__name__ for task in tasks[:2]] == ["noted", "later"]
    assert [task.place for task in tasks] == ["thread", "loop", "thread", "loop", "thread"]

    async def story() -> None:
        await app.setup()
        for task in tasks:
            await task.enqueue("a")
            with pytest.raises(trunkline.BadPayload):
                await task.enqueue(5)  # type: ignore[arg-type]
        assert (await app.drain()).done == 5

    run(story())
    assert sorted(got) == ["later a", "partly a noted"] and one.got == ["a", "a"] and two.got == ["a"]


@pytest.mark.parametrize("handler", [functools.partial(blocking, 5), Sends(), Sends().send], ids=["partial", "object", "method"])
def test_what_has_no_name_in_its_module_runs_in_no_process(handler: Any) -> None:
    with pytest.raises(TypeError, match="is bound to values, so another process cannot find it"):
        trunkline.App().task(queue="mails", place="process")(handler)


async def of_dict(mails: dict[str, int]) -> None: ...


async def of_one(mail: str) -> None: ...


async def of_optional(mails: list[int] | None) -> None: ...


async def of_set(mails: set[int]) -> None: ...


@pytest.mark.parametrize("handler", [of_dict, of_one, of_optional, of_set])
def test_handlers_of_batches_take_lists(handler: Any) -> None:
    with pytest.raises(TypeError, match="its first parameter is a list of payloads"):
        trunkline.App().task(queue="mails", batch=5)(handler)
