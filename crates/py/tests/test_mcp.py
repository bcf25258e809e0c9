"""`nono mcp`, as the official client of the Model Context Protocol speaks to it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, types

NONO = os.environ.get("NONO_BIN")

pytestmark = pytest.mark.skipif(not NONO, reason="NONO_BIN names no nono to talk to")

Talk = Callable[[Client], Awaitable[None]]


def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "NONO_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}


def converse(tmp_path: Path, project: Path, talk: Talk, **options: Any) -> None:
    """Start a server in the project, talk to it, and have it end."""
    server = StdioServerParameters(command=str(NONO), args=["mcp"], env=environment(tmp_path), cwd=project)

    async def main() -> None:
        async with Client(server, **options) as client:
            await talk(client)

    asyncio.run(asyncio.wait_for(main(), 60))


def text(result: Any) -> str:
    assert isinstance(result, types.CallToolResult)
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


def nono(tmp_path: Path, project: Path, *arguments: str) -> None:
    command = [str(NONO), *arguments]
    done = subprocess.run(command, cwd=project, env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_is_known_and_answers(tmp_path: Path, project: Path, mode: str) -> None:
    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert len(tools) == 7
        hints = tools["restore_checkpoint"].annotations
        assert hints is not None and hints.destructive_hint
        taken = await client.call_tool("create_checkpoint", {"reason": "of the client"})
        assert not taken.is_error, text(taken)
        (project / "README").write_text("changed\n")
        listed = await client.call_tool("list_checkpoints", {})
        assert "of the client" in text(listed)
        assert listed.structured_content is not None and listed.structured_content["total"] == 1
        assert "README (" in text(await client.call_tool("changes", {}))
        assert "+changed" in text(await client.call_tool("diff_checkpoint", {"checkpoint": "1"}))
        assert text(await client.call_tool("why", {"path": "~/.ssh/id"})).startswith("DENIED")
        refused = await client.call_tool("request_access", {"path": "/etc/shadow", "reason": "to see"})
        assert refused.is_error and "no sandbox" in text(refused)
        # There is no approver.
        refused = await client.call_tool("restore_checkpoint", {"checkpoint": "1"})
        assert refused.is_error and "nono checkpoints restore" in text(refused)

    converse(tmp_path, project, talk, mode=mode)
    assert (project / "README").read_text() == "changed\n"


@pytest.mark.parametrize("agrees", [True, False])
def test_a_restore_waits_for_the_person(tmp_path: Path, project: Path, agrees: bool) -> None:
    before = (project / "README").read_text()
    nono(tmp_path, project, "checkpoints", "create")
    (project / "README").write_text("changed\n")
    asked: list[str] = []

    async def answer(_context: Any, question: Any) -> types.ElicitResult:
        asked.append(question.message)
        assert (project / "README").read_text() == "changed\n"
        if not agrees:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"confirm": True})

    async def talk(client: Client) -> None:
        result = await client.call_tool("restore_checkpoint", {"checkpoint": "1"})
        assert result.is_error is not agrees, text(result)

    converse(tmp_path, project, talk, elicitation_callback=answer)
    assert len(asked) == 1 and "README" in asked[0]
    assert (project / "README").read_text() == (before if agrees else "changed\n")
