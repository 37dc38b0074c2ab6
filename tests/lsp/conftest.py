"""Fixtures: sessions that all tests share, each of which finds no documents of the others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from lsp.session import PULLING, Session, serve


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_editor() -> AsyncIterator[Session]:
    """A capable editor without a folder, which is pushed its diagnostics."""
    async with serve() as session:
        yield session


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_puller() -> AsyncIterator[Session]:
    """A capable editor without a folder, which asks for its diagnostics."""
    async with serve(PULLING) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="session")
async def editor(shared_editor: Session) -> AsyncIterator[Session]:
    """The editor that is pushed its diagnostics, nothing open."""
    yield shared_editor
    shared_editor.clear()


@pytest_asyncio.fixture(loop_scope="session")
async def puller(shared_puller: Session) -> AsyncIterator[Session]:
    """The editor that asks for its diagnostics, nothing open."""
    yield shared_puller
    shared_puller.clear()


@pytest_asyncio.fixture(loop_scope="session")
async def strict_puller() -> AsyncIterator[Session]:
    """The editor that asks for its diagnostics, which are to be warnings by the letter."""
    async with serve(PULLING, settings={"": {"restrictions": "letter"}}) as session:
        yield session
