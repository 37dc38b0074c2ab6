"""The entries of libraries, in hovers of calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.lsp.session import able, serve
from e2e.lsp.test_settings import project, script

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCRIPT = """import numpy as np
import tensorflow as tf
import wandb
from acme import tracking
from acme.training import BlockAdam, Steps

wandb.init(project="demo")
tracking.start()
x = np.zeros((64, 4), "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(BlockAdam(4, Steps(0.1, 300)), "mse")
model.fit(x, x[:, :1], callbacks=[tf.keras.callbacks.EarlyStopping("loss")])
"""
OWN = """[libraries."acme.tracking"]
start = { role = "tracker" }

[libraries."acme.training"]
BlockAdam = { role = "optimizer", signature = "blocks, learning_rate=0.01" }
Steps = { role = "schedule", signature = "peak, every", rates = ["peak"], steps = ["every"] }
"""


async def test_hovers_tell_what_a_library_s_member_is(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    (folder / "trainshift.toml").write_text(OWN, encoding="utf-8")
    async with serve(able({"textDocument.diagnostic": {}}), folders=[folder]) as session:
        document = script(session, folder, SCRIPT)
        await session.outline(document.uri)
        text = await session.hover(document, document.text.index("wandb.init"))
        assert text == "`wandb.init`: a tracker: left to rank 0."
        assert "a tracker" in await session.hover(document, document.text.index("tracking.start"))
        assert "on every rank" in await session.hover(document, document.text.index("EarlyStopping"))
        assert "rate scaled" in await session.hover(document, document.text.index("BlockAdam(4"))
        assert "a schedule" in await session.hover(document, document.text.index("Steps(0.1"))


LAB = """[libraries."acme.lab"]
Run = { role = "writer-object", path = "folder" }
"Run.log" = { role = "tracker" }
"*.upload" = { role = "outside" }
bar = { role = "prints", argument = "disable" }
Rows = { role = "dataset", says = "give it rank=hvd.rank()" }
make = { role = "optimizer-factory", rate = "peak", signature = "peak" }
"""


async def test_hovers_tell_what_methods_and_arguments_are(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    (folder / "trainshift.toml").write_text(LAB, encoding="utf-8")
    text = "from acme import lab\n\nrun = lab.Run('out')\nrun.log({})\nrun.upload('x')\n"
    text += "rows, make = lab.bar(lab.Rows('train')), lab.make(peak=0.1)\n"
    told = {
        "Run(": "`lab.Run`: makes an object that writes: left to rank 0.",
        "log(": "`run.log`: a tracker: left to rank 0.",
        "upload(": "`run.upload`: acts beyond this program: left to rank 0.",
        "bar(": "`lab.bar`: shows something: `disable` keeps it quiet on other ranks.",
        "Rows(": "`lab.Rows`: makes data, which every rank reads whole; give it rank=hvd.rank().",
        "make(": "`lab.make`: makes an optimizer: wrapped, its rate scaled.",
    }
    async with serve(able({"textDocument.diagnostic": {}}), folders=[folder]) as session:
        document = script(session, folder, SCRIPT.replace("import numpy", f"{text}import numpy", 1))
        await session.outline(document.uri)
        for name, said in told.items():
            assert (await session.hover(document, document.text.index(name))).endswith(said)


async def test_two_folders_have_each_their_own_libraries(tmp_path: Path) -> None:
    knows, other = project(tmp_path / "knows"), project(tmp_path / "other")
    (knows / "trainshift.toml").write_text(OWN, encoding="utf-8")
    async with serve(able({"textDocument.diagnostic": {}}), folders=[knows, other]) as session:
        known, unknown = script(session, knows, SCRIPT), script(session, other, SCRIPT)
        for document, is_known in ((known, True), (unknown, False), (known, True), (unknown, False)):
            session.write(document, document.text + "\n")
            await session.outline(document.uri)
            for name in ("BlockAdam", "Steps"):
                text = await session.hover(document, document.text.index(f"{name}("))
                assert (f"`{name}`: " in text) is is_known
