"""Fixtures: sessions shared by all tests, each of which starts without open documents."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from e2e.lsp.session import PULLING, Session, serve


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_editor() -> AsyncIterator[Session]:
    """A capable editor without a folder, to which diagnostics are pushed."""
    async with serve() as session:
        yield session


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_puller() -> AsyncIterator[Session]:
    """A capable editor without a folder, which pulls its diagnostics."""
    async with serve(PULLING) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="session")
async def editor(shared_editor: Session) -> AsyncIterator[Session]:
    """The editor with pushed diagnostics, without open documents."""
    yield shared_editor
    shared_editor.clear()


@pytest_asyncio.fixture(loop_scope="session")
async def puller(shared_puller: Session) -> AsyncIterator[Session]:
    """The editor that pulls its diagnostics, without open documents."""
    yield shared_puller
    shared_puller.clear()


@pytest_asyncio.fixture(loop_scope="session")
async def strict_puller() -> AsyncIterator[Session]:
    """The editor that pulls its diagnostics, with every violated restriction as a warning."""
    async with serve(PULLING, settings={"": {"restrictions": "letter"}}) as session:
        yield session
