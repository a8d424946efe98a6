"""Results in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

_FIGURES = ("mean", "p50", "p99", "p99_9", "p99_99", "max")


def page(result: Any) -> str:
    """Renders a compact table of a result."""
    data = result.to_dict()
    state = "ok" if data["ok"] else "partial" if data["partial"] else "checks failed"
    head = f"<b>{escape(data['system'])}</b> {escape(' '.join(data['workload']))} ({state}, seed {data['seed']})"
    names = "".join(f"<th>{name.replace('_', '.')} [us]</th>" for name in _FIGURES)
    rows = [f"<tr><th></th><th>requests</th><th>IOPS</th><th>MB/s</th>{names}</tr>"]
    for kind in ("read", "write", "trim", "flush"):
        of = data["io"].get(kind)
        if of and of["requests"]:
            latency = of["latency_ns"]
            cells = [f"{of['requests']:,}", f"{of['iops']:,.0f}", f"{of['bandwidth_bytes_per_s'] / 1e6:,.1f}"]
            cells += [_us(latency.get(name)) for name in _FIGURES]
            rows.append(f"<tr><th>{kind}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    drives = [
        f"{escape(str(drive.get('name', n)))}: write amplification {drive['write_amplification']:.3f}"
        for n, drive in enumerate(data.get("flash", []))
        if drive.get("write_amplification") is not None
    ]
    notes = [f"simulated {data['simulated_ns'] / 1e6:,.3f} ms in {data['run']['wall_s']:.3f} s", *drives]
    failed = [f"failed: {check['name']} ({check['detail']})" for check in data["checks"] if not check["ok"]]
    warnings = "".join(f"<li>{escape(text)}</li>" for text in [*failed, *data["warnings"]])
    table = f"<table>{''.join(rows)}</table>" if len(rows) > 1 else ""
    return f"<div>{head}{table}<div>{'; '.join(notes)}</div><ul>{warnings}</ul></div>"


def _us(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1e3:,.2f}"


def html_table(rows: list[dict[str, str]]) -> str:
    """Rows as a table; a column for each name that one of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(row.get(name, ''))}</td>" for name in names) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>" if rows else ""
