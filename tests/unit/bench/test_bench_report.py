from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.line_chart import line_chart, write_chart
from bench.machine import cpu_model, memory_bytes
from bench.report import Cell, Report, Table, render, shown


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "-"), (7, "7"), ("x", "x"), (0.12345, "0.1235"), (99.96, "99.96"), (12345.6, "12346")],
)
def test_cell_shows_the_digits_that_matter(cell: Cell, text: str) -> None:
    assert shown(cell) == text


def test_table_has_all_columns_of_all_rows_in_line() -> None:
    table = Table("speed", "by rows", [{"rows": 1, "ms": 2.5}, {"rows": 64, "note": "far"}])

    assert render(table).splitlines() == [
        "speed: by rows",
        "rows   ms  note",
        "1     2.5     -",
        "64      -   far",
    ]


def test_report_writes_machine_load_and_tables_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report("engine", {"rounds": 3, "batches": [1, 8]})
    report.add(Table("speed", "by rows", [{"rows": 1, "ms": 2.5}]))
    report.finish(tmp_path / "found.json")

    found = json.loads((tmp_path / "found.json").read_text())
    assert found["load"] == {"rounds": 3, "batches": [1, 8]}
    assert found["tables"] == [
        {"name": "speed", "note": "by rows", "rows": [{"rows": 1, "ms": 2.5}]}
    ]
    assert {"cpu", "cores", "capability", "torch", "python"} <= set(found["machine"])
    assert len(found["load_average_before"]) == len(found["load_average_after"]) == 3
    assert "speed: by rows" in capsys.readouterr().out


def test_processor_is_named_by_the_first_line_that_does(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast CPU @ 3: GHz\nmodel name\t: other\n")

    assert cpu_model(info) == "Fast CPU @ 3: GHz"
    assert cpu_model(tmp_path / "missing") != ""


def test_memory_is_read_in_bytes(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nVmHWM:\t    20 kB\nVmRSS:\t    10 kB\n")

    assert memory_bytes("VmRSS", status) == 10 * 1024
    with pytest.raises(ValueError, match="RssAnon"):
        memory_bytes("RssAnon", status)


def test_chart_is_svg_with_a_circle_for_every_point_and_higher_values_higher_up(
    tmp_path: Path,
) -> None:
    write_chart(tmp_path / "docs" / "a.svg", "Rows < 10 & more", "rows", "ms", [(1, 2), (10, 7)])

    root = ElementTree.parse(tmp_path / "docs" / "a.svg").getroot()
    circles = [each.attrib for each in root if each.tag.endswith("circle")]
    texts = [each.text for each in root if each.tag.endswith("text")]
    assert len(circles) == 2
    assert float(circles[0]["cx"]) < float(circles[1]["cx"])
    assert float(circles[0]["cy"]) > float(circles[1]["cy"])
    assert {"Rows < 10 & more", "rows", "ms", "8", "1", "10"} <= set(texts)


@pytest.mark.parametrize("points", [[], [(0, 1)], [(1, -1)]])
def test_chart_of_points_off_its_axes_is_refused(points: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="points"):
        line_chart("title", "x", "y", points)
