import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { until } from "../harness/until";
import { DATA, TRAIN } from "./project/files";
import { change, choices, choose, lens, page, status, waitForPreview } from "./window";

const COMMAND = "Trainshift: Run With Horovod…";
const SITE = "import site, sysconfig; print(sysconfig.get_path('purelib'))";
const LAUNCHER = `#!/bin/sh
printf '%s\n' "$@" > "$(dirname "$0")/arguments"
echo "trained on $2 processes"
`;

/** An interpreter that only reports the request for a proof, and returns one. */
const PROVING = `#!/bin/sh
bin=$(dirname "$0")
[ "$3" = prove ] || exec "$bin/python" "$@"
printf '%s\n' "$@" > "$bin/asked"
while [ $# -gt 1 ]; do
  [ "$1" = --html ] && cp "$bin/page.html" "$2"
  shift
done
`;
/** A claim of a proof, as shown on its page; the project is larger than the script's folder. */
const CLAIM = `
import sys
from pathlib import Path
from trainshift.proving.page import claim
project = Path(sys.argv[1])
place = {"path": f"{project.name}/train.py", "line": 9, "own": 7, "text": "tape.gradient", "rank": 1}
print(f'<head></head><main data-folder="{project.parent}">')
print(claim({"id": "averaged", "verdict": "fails", "title": "Gradients are averaged", "says": "They are not.",
             "do": "Wrap the tape.", "code": "HV04", "places": [place]}))
`;

const run = promisify(execFile);

/** An environment with the server, and a stub that reports TensorFlow and Horovod. */
async function environment(workspace: string): Promise<void> {
  const bin = join(workspace, ".venv", "bin");
  await run(PYTHON, ["-m", "venv", "--without-pip", join(workspace, ".venv")]);
  const packages = (await run(join(bin, "python"), ["-c", SITE])).stdout.trim();
  const server = (await run(PYTHON, ["-c", SITE])).stdout.trim();
  await writeFile(join(packages, "server.pth"), `import site; site.addsitedir(${JSON.stringify(server)})\n`);
  for (const [name, version] of [
    ["tensorflow", "2.15.1"],
    ["horovod", "0.28.1"],
  ] as const) {
    const folder = join(packages, `${name}-${version}.dist-info`);
    await mkdir(folder);
    await mkdir(join(packages, name));
    await writeFile(join(packages, name, "__init__.py"), "");
    await writeFile(join(folder, "METADATA"), `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`);
  }
  for (const [name, text] of [
    ["launcher", LAUNCHER],
    ["proving", PROVING],
  ] as const) {
    await writeFile(join(bin, name), text);
    await chmod(join(bin, name), 0o755);
  }
  await writeFile(join(bin, "page.html"), (await run(PYTHON, ["-c", CLAIM, workspace])).stdout);
}

export const suites: UiSuite[] = [
  {
    name: "horovod",
    workspace: { "train.py": TRAIN, "data.py": DATA },
    prepare: environment,
    open: "train.py",
    settings: {
      "trainshift.interpreter": ["<workspace>/.venv/bin/proving"],
      // Otherwise the terminal's text is only a picture.
      "terminal.integrated.gpuAcceleration": "off",
    },
    tests(workbench) {
      const { page: window } = workbench;
      const bin = join(workbench.workspace, ".venv", "bin");

      it("says what is missing", async () => {
        await workbench.waitForSquiggle();
        await workbench.runCommand(COMMAND);
        await workbench.toast(/has no horovodrun\./);
        await workbench.screenshot("no horovodrun");
        await workbench.runCommand("Notifications: Clear All Notifications");
      });

      it("offers to make a script distributed first", async () => {
        await rename(join(bin, "launcher"), join(bin, "horovodrun"));
        await workbench.runCommand(COMMAND);
        const dialog = window.locator(".monaco-dialog-box", { hasText: "train.py is not distributed yet" });
        await dialog.waitFor();
        await workbench.screenshot("not distributed");
        await dialog.locator(".monaco-button", { hasText: "Make Distributed" }).click();
        await waitForPreview(workbench);
        await change(workbench, /^Apply/).click();
        await workbench.toast("train.py is distributed");
        await workbench.runCommand("Notifications: Clear All Notifications");
      });

      it("runs a script on as many processes as one wants", async () => {
        await workbench.runCommand(COMMAND);
        const input = window.locator(".quick-input-widget input[type=text]");
        const message = window.locator(".quick-input-widget .quick-input-message");
        await choices(workbench);
        await workbench.screenshot("launch");
        await choose(workbench, "Processes…");
        await until("the number is asked for", async () => (await input.inputValue()) === "2");
        for (const refused of ["0", "x", "1025"]) {
          await input.fill(refused);
          await until(`${refused} is refused`, async () => /A whole number/.test(await message.innerText()));
        }
        await workbench.screenshot("wrong processes");
        await input.fill("3");
        await until("3 is taken", async () => /usually one for each GPU/.test(await message.innerText()));
        await workbench.screenshot("processes");
        await workbench.press("Enter");
        for (const [label, wrong, right] of [
          ["Arguments…", "--name 'a", "--name 'a b' --epochs 3"],
          ["Hosts…", "here", "localhost:2, server2:4"],
        ] as const) {
          await choose(workbench, label);
          await until("it is asked for", async () => (await input.inputValue()) === "");
          await input.fill(wrong);
          await until("it is refused", async () => /missing|NAME:NUMBER/.test(await message.innerText()));
          await input.fill(right);
          await until("it is taken", async () => !/missing|NAME:NUMBER/.test(await message.innerText()));
          await workbench.press("Enter");
        }
        await choose(workbench, "Run on 3 Processes");
        await window.locator(".part.panel .terminal-wrapper, .part.panel .terminal").first().waitFor();
        const given = await until("it has run", () =>
          readFile(join(bin, "arguments"), "utf8").catch(() => undefined),
        );
        await until("the terminal shows it", async () =>
          /trained on 3 processes/.test(
            (await window.locator(".part.panel .xterm-rows").innerText()).replaceAll("\u00a0", " "),
          ),
        );
        await workbench.screenshot("run");
        const script = join(workbench.workspace, "train.py");
        assert.deepEqual(given.trimEnd().split("\n"), [
          ...["-np", "3", "-H", "localhost:2,server2:4"],
          ...[join(bin, "proving"), script, "--name", "a b", "--epochs", "3"],
        ]);
        assert.match(await readFile(script, "utf8"), /hvd\.init/);
      });

      it("remembers how a script was run", async () => {
        await workbench.openFile("train.py");
        await workbench.runCommand(COMMAND);
        const rows = (await choices(workbench)).join("\n");
        await workbench.screenshot("remembered");
        assert.match(rows, /Run on 3 Processes[^]*--name 'a b' --epochs 3[^]*localhost:2, server2:4/);
        await workbench.press("Escape");
      });

      it("proves a script, and leads from what fails to the line", async () => {
        const script = join(workbench.workspace, "train.py");
        const lines = (await readFile(script, "utf8")).split("\n");
        await workbench.placeCursor(lines.findIndex((line) => line.startsWith("for epoch")) + 1);
        await lens(workbench, /^Prove$/).click();
        await choices(workbench);
        await workbench.screenshot("prove");
        await choose(workbench, "Steps…");
        const input = window.locator(".quick-input-widget input[type=text]");
        await until("the number is asked for", async () => (await input.inputValue()) === "20");
        await input.fill("0");
        await workbench.press("Enter");
        await until("the title says so", async () =>
          /Run All Steps of train\.py/.test(await window.locator(".quick-input-title").innerText()),
        );
        await choose(workbench, "Prove With 2 Ranks");
        const claim = page(workbench).locator(".fails");
        await claim.waitFor();
        await workbench.screenshot("proof");
        const asked = (await readFile(join(bin, "asked"), "utf8")).trimEnd().split("\n");
        assert.deepEqual(asked.slice(0, 8), [
          ...["-m", "trainshift", "prove", "--yes", "--color", "always"],
          ...["--python", join(bin, "python")],
        ]);
        assert.deepEqual(asked.slice(-5), ["-np", "2", "--steps", "0", script]);
        await claim.locator("a", { hasText: "train.py:7" }).click();
        await until("the line is shown", async () =>
          /Ln 7,/.test(await status(workbench, /Ln \d+, Col/).innerText()),
        );
      });

      it("shows what the doctor says of the Python of scripts, where Horovod is missing", async () => {
        await rename(join(bin, "horovodrun"), join(bin, "launcher"));
        await workbench.runCommand(COMMAND);
        await workbench.answerToast(/has no horovodrun\./, "How to Install");
        // Empty packages cannot be imported, so there are commands that build Horovod.
        await workbench.answerToast("Horovod", "Show Commands");
        await window.locator(".view-line", { hasText: "horovod-0.28.1" }).first().waitFor();
      });
    },
  },
];
