from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest
import redis

from workers.launcher import redis_server
from workers.launcher.errors import StartRefused
from workers.launcher.external_redis import check_external, without_password
from workers.launcher.instance import Directories
from workers.launcher.redis_server import RedisBinary, find_binary, plan_server

VALKEY = RedisBinary("/bin/valkey", "Valkey 9.1.2")


def fake_server(directory: Path, *lines: str) -> Path:
    directory.mkdir()
    path = directory / "redis-server"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def answering(version: str) -> str:
    return f"echo 'Redis server v={version} sha=00000000:0 malloc=jemalloc-5.2.1 bits=64'"


@pytest.mark.parametrize("version", ["6.2.0", "6.2", "7.0.15", "10.1.0"])
def test_a_new_enough_server_on_the_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    server = fake_server(tmp_path / "bin", answering(version))
    monkeypatch.setenv("PATH", f"{server.parent}:/usr/bin:/bin")

    binary = find_binary()

    assert binary == RedisBinary(str(server), f"Redis {version}")


@pytest.mark.parametrize(
    "lines", [[answering("6.0.16")], [answering("5.0")], ["echo hello"], ["exit 1"], ["exec none"]]
)
def test_the_server_of_the_wheel_is_taken_when_the_one_on_the_path_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    server = fake_server(tmp_path / "bin", *lines)
    monkeypatch.setenv("PATH", f"{server.parent}:/usr/bin:/bin")

    binary = find_binary()

    assert binary.name.startswith("Valkey ")
    assert binary.path != str(server)


def test_the_server_of_the_wheel_is_taken_when_none_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    binary = find_binary()

    assert binary.name.startswith("Valkey ")


def test_the_start_is_refused_when_the_wheel_has_no_server_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(tmp_path / "bin", answering("6.0.16"))
    monkeypatch.setenv("PATH", str(server.parent))
    monkeypatch.setattr(redis_server, "get_binary_path", lambda: tmp_path / "none")

    with pytest.raises(StartRefused, match=r"Redis 6\.0\.16 on the PATH is too old") as refusal:
        find_binary()

    assert "--redis-url" in str(refusal.value)


def test_our_own_server_listens_on_a_socket_and_loses_nothing() -> None:
    directories = Directories(Path("/srv/data dir"))

    server = plan_server(VALKEY, directories)

    words = dict(shlex.split(line) for line in server.configuration.splitlines())
    assert words["port"] == "0"
    assert words["unixsocket"] == "/srv/data dir/redis/redis.sock"
    assert words["unixsocketperm"] == "700"
    assert words["dir"] == "/srv/data dir/redis"
    assert (words["appendonly"], words["appendfsync"]) == ("yes", "everysec")
    assert (words["save"], words["maxmemory-policy"]) == ("", "noeviction")
    assert unquote(server.url) == "unix:///srv/data dir/redis/redis.sock"
    assert server.command == ("/bin/valkey", "/srv/data dir/run/redis.conf")
    assert server.description == "Valkey 9.1.2 on /srv/data dir/redis/redis.sock"


def test_our_own_server_wants_a_password_on_loopback_when_the_path_is_too_long() -> None:
    directories = Directories(Path("/" + "d" * 100))

    server = plan_server(VALKEY, directories)

    words = dict(shlex.split(line) for line in server.configuration.splitlines())
    assert words["bind"] == "127.0.0.1"
    assert "unixsocket" not in words
    assert server.url == f"redis://:{words['requirepass']}@127.0.0.1:{words['port']}/0"
    assert words["requirepass"] not in " ".join((*server.command, server.description))


def test_quotes_in_a_path_stay_inside_the_value() -> None:
    directories = Directories(Path('/a "b\\c'))

    server = plan_server(VALKEY, directories)

    assert 'dir "/a \\"b\\\\c/redis"\n' in server.configuration


@pytest.mark.parametrize("url", ["nowhere", "http://127.0.0.1/0", "redis://127.0.0.1:port/0"])
def test_what_is_no_redis_address_is_refused(url: str) -> None:
    with pytest.raises(StartRefused) as refusal:
        check_external(url, "--redis-url")

    assert str(refusal.value).startswith(f"--redis-url: {url} is no Redis address")


def test_a_redis_that_does_not_answer_is_refused_without_its_password() -> None:
    with pytest.raises(StartRefused) as refusal:
        check_external("redis://me:secret@127.0.0.1:1/0", "$REDIS_URL")

    message = str(refusal.value)
    assert message.startswith("$REDIS_URL: Redis at redis://me:***@127.0.0.1:1/0 cannot be used: ")
    assert message.endswith("; allowed: a Redis or Valkey that answers, 6.2 or newer")
    assert "secret" not in message


class ScriptedRedis:
    def __init__(self, version: str, policy: str | Exception) -> None:
        self.version, self.policy = version, policy

    def info(self, section: str) -> dict[str, str]:
        return {"redis_version": self.version}

    def config_get(self, name: str) -> dict[str, str]:
        if isinstance(self.policy, Exception):
            raise self.policy
        return {name: self.policy}


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> object:
    def script(version: str, policy: str | Exception) -> None:
        server = ScriptedRedis(version, policy)
        monkeypatch.setattr(redis.Redis, "from_url", lambda *_, **__: server)

    return script


def test_a_new_redis_that_never_evicts_is_accepted(answer: object) -> None:
    answer("7.2.4", "noeviction")

    warnings = check_external("redis://h/0", "--redis-url")

    assert warnings == []


def test_an_old_redis_is_refused(answer: object) -> None:
    answer("6.0.16", "noeviction")

    with pytest.raises(StartRefused, match=r"has version 6\.0\.16; allowed: .* 6\.2 or newer"):
        check_external("redis://h/0", "--redis-url")


def test_a_redis_that_evicts_is_refused(answer: object) -> None:
    answer("7.2.4", "allkeys-lru")

    with pytest.raises(StartRefused, match=r"maxmemory-policy allkeys-lru .* allowed: noeviction"):
        check_external("redis://h/0", "--redis-url")


def test_a_redis_that_hides_its_policy_is_accepted_with_a_warning(answer: object) -> None:
    answer("7.2.4", redis.ResponseError("unknown command CONFIG"))

    warnings = check_external("redis://h/0", "--redis-url")

    assert len(warnings) == 1
    assert "it has to be noeviction" in warnings[0]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("redis://:p@h/0", "redis://:***@h/0"),
        ("rediss://u:p@h/0", "rediss://u:***@h/0"),
        ("unix:///a/b.sock", "unix:///a/b.sock"),
        ("redis://:p@[h", "the address"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, expected: str) -> None:
    shown = without_password(url)

    assert shown == expected
