"""The cells that the claims read, as the tables of docs/claims.md."""

from __future__ import annotations

from collections.abc import Iterable

from reproduce.verdicts.claims import ClaimsFile, Contents


def render_demands(files: Iterable[ClaimsFile]) -> str:
    """Per paper: what the cells of each artifact hold, and what each metric is (Markdown)."""
    lines = []
    for file in files:
        lines += [
            f"### {file.paper}",
            "",
            "| artifact | setting columns (values at paper scale) | algorithms | metrics |",
        ]
        lines[-1] += " smaller scales |"
        lines.append("| --- " * 5 + "|")
        lines += [_row(name, cells) for name, cells in file.artifacts.items()]
        lines += ["", "| metric | unit | better | definition |", "| --- | --- | --- | --- |"]
        for metric in file.metrics.values():
            text = metric.text.replace("|", "&#124;")
            lines.append(f"| `{metric.name}` | {metric.unit} | {metric.better} | {text} |")
        lines.append("")
    return "\n".join(lines)


def _row(name: str, cells: Contents) -> str:
    columns = [f"`{column}`: {', '.join(values)}" for column, values in cells.columns.items()]
    columns += [f"labels: {', '.join(f'`{label}`' for label in cells.labels)}"] if cells.labels else []
    metrics = ", ".join(f"`{m}`" + "*" * (m in cells.points) for m in cells.metrics)
    return f"| {name} | {'; '.join(columns) or 'none'} | {', '.join(cells.algorithms)} | {metrics} | {cells.reduced} |"
