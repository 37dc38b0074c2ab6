"""Fixtures: sessions that the tests of one module share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from lsp.session import PULLING, Session, serve


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor() -> AsyncIterator[Session]:
    """A capable editor without a folder, which is pushed its diagnostics."""
    async with serve() as session:
        yield session


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def puller() -> AsyncIterator[Session]:
    """A capable editor without a folder, which asks for its diagnostics."""
    async with serve(PULLING) as session:
        yield session
