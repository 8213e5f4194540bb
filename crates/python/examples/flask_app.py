"""A Flask application with blocking calls and one handle for all threads.

`flask --app flask_app run` serves it, and `trunkline-worker flask_app:app` runs a worker.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import trunkline
from flask import Flask, abort, jsonify, request
from flask.typing import ResponseReturnValue
from sqlalchemy import create_engine, text
from trunkline import transaction

app = trunkline.App(os.environ["DATABASE_URL"])
engine = create_engine(os.environ["SQLALCHEMY_URL"])
sent: list[str] = []


@dataclass
class Mail:
    to: str
    text: str


@app.task(queue="mails", retry=trunkline.Backoff(max_attempts=5), timeout=30)
def send(mail: Mail) -> None:  # a plain function: it runs in a thread
    sent.append(mail.to)


api = Flask(__name__)


@api.post("/mails")
def enqueue() -> ResponseReturnValue:
    # The message is on disk when the call returns. Concurrent threads share one commit.
    id = app.queue_sync(send).enqueue(Mail(**request.get_json()))
    return jsonify(id=id), 202


@api.get("/mails/<int:id>")
def look(id: int) -> ResponseReturnValue:
    found = app.queue_sync(send).find(id) or abort(404)
    return jsonify(state=found.state, attempt=found.attempt, error=found.error)


@api.post("/users")
def sign_up() -> ResponseReturnValue:
    mail = Mail(**request.get_json())
    with engine.begin() as connection:
        connection.execute(text("insert into users (mail) values (:mail)"), {"mail": mail.to})
        transaction.queue(connection, send).enqueue(mail)  # with the user, or not at all
    return "", 201
