"""Keeps one node told of this service's models: compares what it should know with what it knows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from workers.contract.fleet import Fleet
from workers.contract.node_ledger import NodeLedger, NodeState
from workers.contract.registrations import Registration
from workers.registration.backoff import Backoff
from workers.registration.catalogue import registrations_of
from workers.registration.lease import RegistrarLease
from workers.registration.node_client import NodeClient, NodeRefused

REPEAT_S = 60.0
"""Registration is also the update: a node forgets who does not repeat it."""

MAX_WITHDRAWALS = 10
"""Tries of unregistering; a node that takes none of them is left to forget by itself."""

log = logging.getLogger(__name__)


class Registrar:
    """One node, seen by one worker. Nothing here waits but calls to the node.

    Args:
        node: the node.
        ledger: what it was told.
        lease: of the right to speak with it.
        fleet: the workers.
        project: to which their models belong.
        public_url: start of the URLs at which they are called.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        node: NodeClient,
        ledger: NodeLedger,
        lease: RegistrarLease,
        fleet: Fleet,
        *,
        project: str,
        public_url: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._ledger = ledger
        self._lease = lease
        self._fleet = fleet
        self._project = project
        self._public_url = public_url
        self._clock = clock
        self._repeat_at = 0.0
        self._registering = Backoff(clock)
        self._withdrawing = Backoff(clock)
        self._last_said: tuple[NodeState, str] | None = None
        self._report_at = 0.0

    def tick(self) -> None:
        """Do what is due, if it is for this worker to do it.

        Raises:
            redis.RedisError: Redis does not answer; what the node was told may be told again.
        """
        if not self._lease.hold():
            # Another worker's times are not known here: who takes over begins anew.
            self._repeat_at = self._report_at = 0.0
            return
        wanted, known = self._wanted(), self._ledger.registered()
        is_due = self._clock() >= self._repeat_at or any(each not in known for each in wanted)
        if not wanted:
            self._registering.reset()
        elif is_due and self._registering.is_over():
            self._register(wanted)
        gone = _missing_from(wanted, known)
        if not gone:
            self._withdrawing.reset()
        elif self._withdrawing.is_over():
            self._withdraw(gone, wanted)
        is_well = not self._registering.n_failures and not self._withdrawing.n_failures
        if is_well and self._clock() >= self._report_at:
            self._tell(NodeState.REGISTERED if wanted else NodeState.IDLE, "", len(wanted))

    def farewell(self, cid: str) -> None:
        """Let the node forget one worker, which ends; whoever speaks with the node otherwise.

        Args:
            cid: the worker's.

        Raises:
            redis.RedisError: Redis does not answer, so it is not known what the node knows.
        """
        known = self._ledger.registered()
        own = [each for each in known if each.cid == cid]
        if own:
            self._node.hurry()
            self._withdraw(own, [each for each in self._wanted() if each.cid != cid])
        self._lease.release()

    def _wanted(self) -> list[Registration]:
        return registrations_of(self._fleet.workers(), self._project, self._public_url)

    def _register(self, wanted: Sequence[Registration]) -> None:
        try:
            self._node.register(wanted)
        except NodeRefused as error:
            self._registering.fail()
            self._tell(NodeState.FAILING, str(error), len(self._ledger.registered()))
            return
        self._registering.reset()
        self._repeat_at = self._clock() + REPEAT_S
        self._ledger.record(wanted)
        self._tell(NodeState.REGISTERED, "", len(wanted))

    def _withdraw(self, gone: Sequence[Registration], wanted: Sequence[Registration]) -> None:
        try:
            self._unregister(gone, wanted)
        except NodeRefused as error:
            self._withdrawing.fail()
            self._tell(NodeState.FAILING, str(error), len(self._ledger.registered()))
            if self._withdrawing.n_failures < MAX_WITHDRAWALS:
                return
        self._withdrawing.reset()
        self._ledger.forget(gone)
        self._report_at = 0.0

    def _unregister(self, gone: Sequence[Registration], wanted: Sequence[Registration]) -> None:
        """One call for each server, or for a project that we had as a whole and that has ended.

        A project of which single servers were registered may have others, of other services.
        """
        left = {each.project for each in wanted}
        left |= {each.project for each in self._ledger.registered() if each not in gone}
        ended = {each.project for each in gone if each.project not in left}
        whole = {project for project in ended if self._ledger.is_whole(project)}
        for project in sorted(whole):
            self._node.unregister_project(project)
            self._ledger.forget_project(project)
        for each in gone:
            if each.project not in whole:
                self._node.unregister(each)

    def _tell(self, state: NodeState, error: str, n_registered: int) -> None:
        """Let the API know how things stand, and the log what is new."""
        self._report_at = self._clock() + REPEAT_S
        self._ledger.report(state, error, n_registered)
        is_said = (state, error) == self._last_said
        is_said |= state is NodeState.IDLE and self._last_said is None
        self._last_said = state, error
        if is_said:
            return
        if state is NodeState.FAILING:
            log.warning("node %s: %s; it is tried again", self._ledger.node, error)
        else:
            log.warning("node %s: %s (workers: %d)", self._ledger.node, state.value, n_registered)


def _missing_from(
    wanted: Sequence[Registration], known: Sequence[Registration]
) -> list[Registration]:
    """What a node knows and should not."""
    identities = {each.identity for each in wanted}
    return [each for each in known if each.identity not in identities]
