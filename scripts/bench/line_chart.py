"""Small line charts as SVG, without a library: measured points over a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 40, 52
TICKS = 4
STYLE = "font-family='sans-serif' font-size='12' fill='#333'"

Point = tuple[float, float]


def line_chart(title: str, x_name: str, y_name: str, points: Sequence[Point]) -> str:
    """The chart as the text of an SVG file.

    Args:
        title: above it.
        x_name: of the horizontal axis, which is logarithmic.
        y_name: of the vertical axis, which begins at 0.
        points: x above 0, y at least 0.

    Raises:
        ValueError: there is no point, or one that the axes do not have.
    """
    if not points or any(x <= 0 or y < 0 for x, y in points):
        raise ValueError("a chart needs points with x above 0 and y of at least 0")
    top = _round_up(max(y for _, y in points))
    low, high = (math.log(f(x for x, _ in points)) for f in (min, max))

    def place(x: float, y: float) -> Point:
        share = (math.log(x) - low) / (high - low) if high > low else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / top * _plot_height()

    places = [place(x, y) for x, y in points]
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}'>",
            f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#fff'/>",
            _text(WIDTH / 2, 22, title, "middle"),
            *_horizontal_lines(top),
            *(_text(place(x, 0)[0], HEIGHT - BOTTOM + 18, f"{x:g}", "middle") for x, _ in points),
            _text(WIDTH / 2, HEIGHT - 12, x_name, "middle"),
            _text(8, TOP - 8, y_name, "start"),
            _line(places),
            *(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.5' fill='#1f5fa8'/>" for x, y in places),
            "</svg>",
            "",
        ]
    )


def write_chart(file: Path, title: str, x_name: str, y_name: str, points: Sequence[Point]) -> None:
    """Write a chart into a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(line_chart(title, x_name, y_name, points))


def _plot_height() -> int:
    return HEIGHT - TOP - BOTTOM


def _horizontal_lines(top: float) -> list[str]:
    """Lines across the chart, with their values."""
    parts = []
    for tick in range(TICKS + 1):
        y = HEIGHT - BOTTOM - tick / TICKS * _plot_height()
        parts.append(f"<path d='M{LEFT} {y:.1f}H{WIDTH - RIGHT}' stroke='#ddd'/>")
        parts.append(_text(LEFT - 8, y + 4, f"{top * tick / TICKS:g}", "end"))
    return parts


def _line(places: Sequence[Point]) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f"<polyline points='{corners}' fill='none' stroke='#1f5fa8' stroke-width='2'/>"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {STYLE}>{escaped}</text>"


def _round_up(value: float) -> float:
    """The next number of the form 1, 2, 4, 6, 8 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = float(10 ** math.floor(math.log10(value)))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value)
