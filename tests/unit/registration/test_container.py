from __future__ import annotations

from pathlib import Path

import pytest

from workers.registration.container import container_id, is_main_program, worker_cid

ID = "d15c4007271b" + "0" * 52
OVERLAY = "f" * 64


def proc(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


@pytest.mark.parametrize(
    "line",
    [
        f"12:cpu:/docker/{ID}\n",
        f"0::/system.slice/docker-{ID}.scope\n",
        f"1:name=systemd:/kubepods/besteffort/pod1/{ID}\n0::/\n",
    ],
)
def test_the_kernel_names_the_container_by_its_control_group(tmp_path: Path, line: str) -> None:
    assert container_id("host", proc(tmp_path, cgroup=line)) == "d15c4007271b"


def test_the_containers_own_files_name_it_where_its_group_does_not(tmp_path: Path) -> None:
    mounts = (
        f"1 2 0:1 / / rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/{OVERLAY}/diff\n"
        f"3 1 8:1 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw - ext4 /dev/sda rw\n"
    )

    assert container_id("host", proc(tmp_path, cgroup="0::/\n", mountinfo=mounts)) == ID[:12]


def test_a_host_that_runs_containers_is_none_of_them(tmp_path: Path) -> None:
    mounts = f"3 1 0:9 / /var/lib/docker/containers/{ID}/mounts/shm rw - tmpfs shm rw\n"

    assert container_id("host", proc(tmp_path, cgroup="0::/\n", mountinfo=mounts)) is None


@pytest.mark.parametrize(
    ("hostname", "expected"), [("d15c4007271b", "d15c4007271b"), ("D15C4007271B", None)]
)
def test_a_name_of_twelve_digits_is_that_of_a_container(
    tmp_path: Path, hostname: str, expected: str | None
) -> None:
    assert container_id(hostname, tmp_path) == expected


def test_a_worker_alone_in_its_container_goes_by_its_id_and_others_by_ids_of_their_own() -> None:
    def cid(worker: str, service: str = "/data", *, has_container: bool = False) -> str:
        return worker_cid(
            hostname="d15c4007271b", service=service, worker=worker, has_container=has_container
        )

    others = {cid("worker-1"), cid("worker-2"), cid("worker-1", "/else")}

    assert len(others) == 3
    assert all(len(each) == 12 and int(each, 16) >= 0 for each in others)
    assert cid("worker-1") == cid("worker-1")
    assert cid("worker", has_container=True) not in others


@pytest.mark.parametrize(
    ("command", "expected"), [("tini\0--\0./start.sh\0--slots=2\0", True), ("bash\0", False)]
)
def test_the_first_process_says_what_a_container_is_for(
    tmp_path: Path, command: str, expected: bool
) -> None:
    found = is_main_program(["start.sh", "launcher"], proc(tmp_path, cmdline=command))

    assert found is expected
