"""Checks that the API can listen where it is told to, before anything is started."""

from __future__ import annotations

import errno
import ipaddress
import socket
import time

from workers.launcher.errors import BadFlag

POLL_S = 0.2
ALLOWED = "allowed: an address of this host, such as 127.0.0.1 or 0.0.0.0"


def check_listening(address: str, port: int, patience_s: float = 0) -> None:
    """Refuse an address that is not this host's, and a port that cannot be had.

    Args:
        address: IPv4 or IPv6 address, or a name of this host.
        port: TCP port.
        patience_s: how long to wait for a port in use, 0 = not at all.

    Raises:
        BadFlag: which of the two is wrong, and why.
    """
    deadline = time.monotonic() + patience_s
    while not _is_free(address, port):
        if time.monotonic() >= deadline:
            problem = f"is already in use on {address}; allowed: a port that is free"
            raise BadFlag("--listen-port", port, problem)
        time.sleep(POLL_S)


def _is_free(address: str, port: int) -> bool:
    family, bind_to = _resolve(address, port)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(bind_to)
            probe.listen()
        except PermissionError as error:
            raise BadFlag(
                "--listen-port", port, "is not allowed for this user; allowed: a port from 1024 up"
            ) from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            problem = f"cannot be listened on: {error.strerror}; {ALLOWED}"
            raise BadFlag("--listen-address", address, problem) from error
    return True


def is_loopback(address: str) -> bool:
    """Whether only this host can connect to the address."""
    _, bound = _resolve(address, 0)
    return ipaddress.ip_address(bound[0].partition("%")[0]).is_loopback


def free_loopback_port() -> int:
    """A TCP port on the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _resolve(address: str, port: int) -> tuple[int, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise BadFlag("--listen-address", address, f"is no address; {ALLOWED}") from error
    family, _, _, _, bind_to = found[0]
    return family, (str(bind_to[0]), int(bind_to[1]))
