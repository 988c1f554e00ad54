"""Calls a node's registration paths."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from typing import Any

import msgspec

from workers.contract.errors import NeodimError
from workers.contract.http_address import HttpAddress
from workers.contract.registrations import REGISTRATION_PATHS, Registration

CALL_TIMEOUT_S = 5.0
FAREWELL_TIMEOUT_S = 3.0
"""Less, since nobody waits long for a worker that ends."""

MAX_ANSWER_BYTES = 64 * 1024
SHOWN_CHARACTERS = 200


class NodeRefused(NeodimError):
    """A node does not answer, or not as if it had done what it was asked to do."""

    code = "node_refused"


class Answer(msgspec.Struct):
    """What a node says."""

    code: int
    message: str = ""


class NodeClient:
    """One node.

    Args:
        address: where it answers.
        timeout_s: of connecting, and of each wait for its answer.
    """

    def __init__(self, address: HttpAddress, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._address = address
        self._timeout_s = timeout_s

    def register(self, registrations: Sequence[Registration]) -> None:
        """Register one server, or in one go all servers of one project.

        Raises:
            NodeRefused: it did not work.
        """
        entries = [_entry(each) for each in registrations]
        project = registrations[0].project
        if len(entries) == 1:
            self._call("model/register", {"project": project, **entries[0]})
        else:
            self._call("project/register", {"project": project, "models": entries})

    def unregister(self, registration: Registration) -> None:
        """Let the node forget one server.

        Raises:
            NodeRefused: it did not work.
        """
        project, model, cid = registration.identity
        self._call("model/unregister", {"project": project, "model": model, "cid": cid})

    def unregister_project(self, project: str) -> None:
        """Let the node forget every server of a project.

        Raises:
            NodeRefused: it did not work.
        """
        self._call("project/unregister", {"project": project})

    def hurry(self) -> None:
        """From now on, wait less."""
        self._timeout_s = min(self._timeout_s, FAREWELL_TIMEOUT_S)

    def _call(self, action: str, body: dict[str, Any]) -> None:
        path = f"{self._address.path}{REGISTRATION_PATHS}{action}"
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if self._address.key:
            headers["Authorization"] = f"Bearer {self._address.key}"
        connection = self._address.connect(self._timeout_s)
        try:
            connection.request("POST", path, msgspec.json.encode(body), headers)
            reply = connection.getresponse()
            _check(action, reply.status, reply.read(MAX_ANSWER_BYTES))
        except TimeoutError:
            raise NodeRefused(f"no answer within {self._timeout_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise NodeRefused(f"no answer: {error or type(error).__name__}") from None
        finally:
            connection.close()


def _entry(registration: Registration) -> dict[str, Any]:
    """A server as an element of a project's list."""
    return {
        "model": registration.model,
        "api": registration.api,
        "type": registration.type,
        "cid": registration.cid,
    }


def _check(action: str, status: int, body: bytes) -> None:
    """Raise unless the node says that it has done it."""
    try:
        answer = msgspec.json.decode(body, type=Answer)
    except msgspec.MsgspecError:
        # Answers of proxies are pages, which nobody wants in a log.
        answer = Answer(code=-1, message="its answer is not the standard's JSON")
    if status == 200 and answer.code == 0:
        return
    code = "" if answer.code == -1 else f", code {answer.code}"
    message = answer.message[:SHOWN_CHARACTERS]
    raise NodeRefused(f"{action}: status {status}{code}: {message}")
