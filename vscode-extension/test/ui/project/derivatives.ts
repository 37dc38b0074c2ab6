import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { differentiated } from "../../harness/tool";
import { until } from "../../harness/until";
import { appears, choices, choose, clearToasts, hover, status } from "../window";
import type { Part } from "./part";

const PENDULUM = `"""A damped pendulum: no training, no TensorFlow."""
import math


def energy(angle, speed, steps: int):
    # half the square of the speed, and the height
    if steps > 3:
        return 0.5 * speed * speed
    return 0.5 * speed * speed + 9.81 * (1 - math.cos(angle))


def careful(angle):
    try:
        return angle * angle
    finally:
        print("done")
`;
const DAMPED = `"""A spring and its damper."""
import math


def damped(x, k):
    # stiff below zero
    if x < 0:
        return k * x
    return k * math.sin(x)
`;
const BODY = 9;
const REFUSED = 14;
const FORWARD = "Trainshift: Differentiate (forward mode)";
const REVERSE = "Trainshift: Differentiate (reverse mode)";

/** Write the gradient of `damped` into a file of its own. */
export async function writeGradient(workspace: string): Promise<void> {
  const text = await differentiated(workspace, "damped.py:damped");
  await writeFile(join(workspace, "gradient.py"), text.slice(text.indexOf("# Made by")));
}

export const derivatives: Part = {
  files: { "pendulum.py": PENDULUM, "damped.py": DAMPED },
  open: "pendulum.py",
  tests(workbench) {
    const wanted = (...options: string[]): Promise<string> =>
      differentiated(workbench.workspace, "pendulum.py:energy", ...options);

    for (const [title, mode] of [
      [REVERSE, "reverse"],
      [FORWARD, "forward"],
    ] as const) {
      it(`differentiates a function in ${mode} mode, and undoes that`, async () => {
        await workbench.placeCursor(BODY, 12);
        await workbench.refactor(title);
        await workbench.waitForText(await wanted("--mode", mode));
        await workbench.press("Control+Z");
        await workbench.waitForText(PENDULUM);
      });
    }

    it("offers it in the light bulb, and by the parameter at the cursor", async () => {
      await workbench.placeCursor(5, 14);
      const titles = await workbench.quickFixes();
      assert.deepEqual(
        titles.filter((each) => each.includes("Differentiate")),
        [FORWARD, REVERSE, "Trainshift: Differentiate by angle (reverse mode)"],
      );
      await workbench.press("Control+.");
      await workbench.page.locator(".action-widget .title", { hasText: "by angle" }).waitFor();
      await workbench.screenshot("differentiate menu");
      await workbench.press("Escape");
    });

    it("offers it on a selection", async () => {
      await workbench.placeCursor(BODY, 12);
      await workbench.press("Shift+End");
      await workbench.refactor(REVERSE);
      await workbench.waitForText(await wanted());
      await workbench.press("Control+Z");
      await workbench.waitForText(PENDULUM);
    });

    it("says why a function is refused", async () => {
      await workbench.placeCursor(REFUSED, 16);
      const row = workbench.page.locator(".action-widget .monaco-list-row.option-disabled", {
        hasText: /Differentiate \(reverse/,
      });
      await until("the menu shows it", async () => {
        await workbench.press("Escape", "Control+Shift+R");
        return appears(row);
      });
      await workbench.screenshot("differentiate refused");
      await workbench.press("Escape");
      await workbench.runCommand("Trainshift: Differentiate Function…");
      await choose(workbench, "Reverse mode");
      const toast = await workbench.toast(/Not differentiated\. Line \d+: try cannot be differentiated/);
      await toast.locator(".monaco-button", { hasText: "Go to Line 13" }).click();
      await status(workbench, "Ln 13,").waitFor();
      await clearToasts(workbench);
    });

    it("asks for the mode and the parameters", async () => {
      await workbench.placeCursor(BODY, 12);
      await workbench.runCommand("Trainshift: Differentiate Function…");
      assert.match((await choices(workbench)).join("\n"), /Reverse mode.*The gradient.*Forward mode/s);
      await workbench.screenshot("differentiate modes");
      await choose(workbench, "Forward mode");
      await workbench.page.locator(".quick-input-widget .monaco-list-row", { hasText: "steps" }).waitFor();
      await workbench.screenshot("differentiate parameters");
      await choose(workbench, "angle");
      await workbench.press("Enter");
      await workbench.waitForText(await wanted("--mode", "forward", "--wrt", "speed"));
      await workbench.press("Control+Z");
      await workbench.waitForText(PENDULUM);
    });

    it("tells what was made, and makes it again where the original changed", async () => {
      await workbench.placeCursor(BODY, 12);
      await workbench.refactor(REVERSE);
      const made = await wanted();
      await workbench.waitForText(made);
      const line = made.split("\n").findIndex((each) => each.startsWith("# Made by")) + 1;
      await workbench.placeCursor(line, 10);
      const comment = workbench.page.locator(".view-line span span", { hasText: /Made.by.trainshift/ });
      await hover(workbench, comment, /energy has not changed since/);
      await workbench.placeCursor(BODY, 12);
      await workbench.page.keyboard.type("2 * ");
      await workbench.placeCursor(line, 10);
      await hover(workbench, comment, /energy has changed since/);
      await workbench.screenshot("differentiate hover");
      await workbench.refactor("Trainshift: Make again");
      await hover(workbench, comment, /energy has not changed since/);
      assert.match(await workbench.savedText("pendulum.py"), /return 2 \* 0\.5 \* speed/);
      // A second run changes nothing.
      await workbench.waitForText(await wanted());
    });

    it("writes a gradient that looks like the function", async () => {
      await workbench.runCommand("View: Close All Editors");
      await workbench.openFile("damped.py");
      await workbench.runCommand("View: Split Editor Right");
      await workbench.openFile("gradient.py");
      await workbench.press("Control+B");
      await workbench.picture("gradient", 1460, 520);
    });
  },
};
