"""Lists of changes."""

from __future__ import annotations

from typing import Any

from ._nono_py import Change

__all__ = ["ChangeList"]

_SIGNS = {"created": "+", "modified": "~", "deleted": "-", "permissions_changed": "%"}
_SHOWN = 200


def _visible(text: str) -> str:
    """Text with control and formatting characters, and surrogates, shown as escapes."""
    import html

    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return html.escape(plain)


class ChangeList(list[Change]):
    """A list of changes, sorted by path, that a notebook shows as a table."""

    __slots__ = ()

    def to_dict(self) -> list[dict[str, Any]]:
        """The changes as plain dicts."""
        return [change.to_dict() for change in self]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{_SIGNS.get(change.change_type, '')} {_visible(change.change_type)}</td>"
            f"<td>{_visible(change.kind)}</td><td>{_visible(change.path)}</td><td>{change.size_delta:+}</td></tr>"
            for change in self[:_SHOWN]
        )
        more = f"<p>and {len(self) - _SHOWN} more</p>" if len(self) > _SHOWN else ""
        head = "<tr><th>change</th><th>kind</th><th>path</th><th>bytes</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{more}"
