"""Creates the queues and schedules of an application in the database."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence, Set
from typing import Any

from ..db import Db
from ..errors import NoQueue, TrunklineError
from ..queue import Queue
from .task import Task

_logger = logging.getLogger("trunkline.worker")
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,47}")
_DENIED = "42501"
_UNDEFINED = "42704"
#: The remedy for a role that may not manage schedules.
_OPERATOR = (
    "run App.setup as the role that owns the schema, or give this role the rights of an operator of all queues: "
    "`select trunkline.grant_rights('ROLE', 'operator')` in SQL"
)


class UnknownQueue(ValueError):
    """The application has no task for a queue that was named."""


def checked_name(what: str, name: str) -> str:
    """Checks that the database accepts a name, and returns it."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"a {what} cannot be named {name!r}: a name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, '_', '.' or '-'; "
            f"pass {'queue' if what == 'queue' else 'name'}="
        )
    return name


class Setup:
    """The declarations of an application, to be created in one database."""

    def __init__(self, db: Db, tasks: Sequence[Task[Any]], declared: Set[str], as_permitted: bool) -> None:
        self._db, self._tasks, self._as_permitted = db, tasks, as_permitted
        #: The names of all schedules of the application.
        self._declared = declared

    async def done(self, drop_schedules: bool) -> None:
        """Migrates the schema, and creates the tasks' queues and schedules.

        With `drop_schedules`, drops schedules of these queues that no task declares. If the role
        may not do a step, raises `TrunklineError`, or logs it if the setup is `as_permitted`.
        """
        try:
            await self._db.migrate()
        except TrunklineError as error:
            self._left(error, "the schema cannot be migrated", "run App.setup as the role that owns it")
        for task in self._tasks:
            await self._create(task)
            await self._schedule(task)
        await self._undeclared(drop_schedules)

    async def _create(self, task: Task[Any]) -> None:
        try:
            await self._db.create_queue(task.queue, task.codec, **task.settings)
        except TrunklineError as error:
            if error.sqlstate != _DENIED:
                raise
            try:
                await self._db.describe_queue(task.queue)
            except NoQueue:
                self._left(error, f"queue {task.queue!r} does not exist and cannot be created", "run App.setup as the role that owns the schema")

    async def _schedule(self, task: Task[Any]) -> None:
        if not task.schedules:
            return
        queue: Queue[Any] = await task.app.queue(task)
        for schedule, payload in task.schedules:
            try:
                await queue.schedule(schedule, payload)
            except TrunklineError as error:
                self._left(error, f"schedule {schedule.name!r} of queue {task.queue!r} cannot be stored", _OPERATOR)

    async def _undeclared(self, drop: bool) -> None:
        """Logs or drops schedules of the tasks' queues that no task declares, for example those of
        an older program."""
        ours = {task.queue for task in self._tasks}
        try:
            there = await self._db.schedules()
        except TrunklineError as error:
            if error.sqlstate != _DENIED:
                raise
            if drop:
                self._left(error, "schedules cannot be dropped", _OPERATOR)
            return  # a consumer may not list schedules
        for schedule in there:
            if schedule.queue not in ours or schedule.name in self._declared:
                continue
            about = {"schedule": schedule.name, "queue": schedule.queue}
            if drop:
                try:
                    await self._db.drop_schedule(schedule.name)
                except TrunklineError as error:
                    if error.sqlstate != _UNDEFINED:
                        raise
                    continue  # another worker that starts at the same time has dropped it
                _logger.warning("schedule %r of queue %r was dropped: no task declares it", schedule.name, schedule.queue, extra=about)
            elif not schedule.is_paused:
                _logger.warning(
                    "schedule %r enqueues into %r (%s), and no task declares it: drop it with App.setup(drop_schedules=True) or "
                    "Db.drop_schedule, or pause it",
                    schedule.name, schedule.queue, schedule.expression, extra=about,
                )  # fmt: skip

    def _left(self, error: TrunklineError, what: str, remedy: str) -> None:
        """Logs or raises an error about a step for which the role lacks a right."""
        if error.sqlstate != _DENIED:
            raise error
        if not self._as_permitted:
            raise TrunklineError(f"{what}: {error}. To fix this, {remedy}", sqlstate=error.sqlstate) from error
        _logger.warning("%s, because the role lacks the right; %s", what, remedy)
