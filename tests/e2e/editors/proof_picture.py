"""Makes the README's picture of a proof that fails (half a minute).

It takes the Python of the proof, and the Chromium and Node of the editors' tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

ROOT = Path(__file__).parents[3]
PICTURE = ROOT / "server" / "docs" / "proof.png"


def main() -> None:
    """Prove the faulty script, and take a screenshot of the page."""
    with TemporaryDirectory() as folder:
        script = shutil.copy(ROOT / "fixtures" / "readme" / "by_hand.py", folder)
        page = Path(folder) / "proof.html"
        command = ["-m", "trainshift", "prove", "--yes", "--python", sys.executable, "--html", page.name]
        # The proof fails, as it should.
        subprocess.run([sys.executable, *command, Path(script).name], cwd=folder, check=False)
        look, playwright = ROOT / "tests/e2e/editors/proof_page.mjs", ROOT / "vscode-extension/package.json"
        whole = Path(folder) / "proof.png"
        subprocess.run(["node", look, page.as_uri(), playwright, whole], check=True, capture_output=True)
        # A page has few colours.
        Image.open(whole).convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
