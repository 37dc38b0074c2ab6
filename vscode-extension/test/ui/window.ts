/** Elements that the tests read and click, beyond those of the harness. */

import type { FrameLocator, Locator } from "playwright-core";
import type { Workbench } from "../harness/browser";
import { until } from "../harness/until";

/** A line above a training loop. */
export function lens(workbench: Workbench, text: string | RegExp): Locator {
  return workbench.page.locator(".codelens-decoration a", { hasText: text }).first();
}

/** A row of the list "Make Distributed". */
export function change(workbench: Workbench, text: string | RegExp): Locator {
  return workbench.page.locator(".part.panel .tree-explorer-viewlet-tree-view .monaco-list-row", {
    hasText: text,
  });
}

/** The tab of a title. */
export function tab(workbench: Workbench, title: string | RegExp): Locator {
  return workbench.page.locator(".tabs-container .tab", { hasText: title });
}

export async function waitForPreview(workbench: Workbench): Promise<void> {
  await tab(workbench, "made distributed").waitFor();
  await change(workbench, /^Apply \d+ Change/).waitFor();
  await workbench.page.locator(".monaco-diff-editor .line-insert").first().waitFor();
}

/** Cancel a conversion. */
export async function discard(workbench: Workbench): Promise<void> {
  await change(workbench, /^Discard/).click();
  await tab(workbench, "made distributed").waitFor({ state: "hidden" });
}

/** An item of the status bar. */
export function status(workbench: Workbench, text: string | RegExp): Locator {
  return workbench.page.locator(".part.statusbar .statusbar-item", { hasText: text }).first();
}

/** The rows of the open list, once there are any. */
export async function choices(workbench: Workbench): Promise<string[]> {
  const rows = workbench.page.locator(".quick-input-widget .monaco-list-row");
  await rows.first().waitFor();
  return rows.allInnerTexts();
}

/** Choose a row of the open list. */
export async function choose(workbench: Workbench, text: string | RegExp): Promise<void> {
  await workbench.page.locator(".quick-input-widget .monaco-list-row", { hasText: text }).first().click();
}

/** The contents of a web page in the editor, such as rendered Markdown. */
export function page(workbench: Workbench): FrameLocator {
  return workbench.page.frameLocator("iframe.webview.ready").last().frameLocator("#active-frame");
}

/** Hover over an element until a hover shows a text; returns the hover. */
export async function hover(workbench: Workbench, at: Locator, text: string | RegExp): Promise<Locator> {
  const shown = workbench.page.locator(".monaco-hover:not(.hidden)", { hasText: text }).first();
  await until(`a hover shows ${String(text)}`, async () => {
    await workbench.page.mouse.move(2, 2);
    await at.hover();
    return appears(shown);
  });
  return shown;
}

/** Wait until Problems opens by itself. */
export async function problemsShown(workbench: Workbench): Promise<void> {
  await workbench.page.locator(".markers-panel").waitFor();
}

/** Send away the notifications that are shown. */
/** What the messages in view say, of those that name somebody; VS Code has messages of its own. */
export async function toasts(workbench: Workbench, name: string): Promise<string[]> {
  return workbench.page.locator(".notification-list-item", { hasText: name }).allInnerTexts();
}

export async function clearToasts(workbench: Workbench): Promise<void> {
  await workbench.runCommand("Notifications: Clear All Notifications");
  await workbench.page
    .locator(".notifications-toasts .notification-list-item")
    .first()
    .waitFor({ state: "hidden" });
}

export async function closeEditors(workbench: Workbench): Promise<void> {
  await workbench.runCommand("View: Close All Editors");
  await workbench.page.locator(".tabs-container .tab").first().waitFor({ state: "hidden" });
}

/** Drag the upper edge of the panel to this height. */
export async function resizePanel(workbench: Workbench, height: number): Promise<void> {
  const panel = await workbench.page.locator(".part.panel").boundingBox();
  if (panel === null) throw new Error("no panel is shown");
  const { mouse } = workbench.page;
  await mouse.move(panel.x + panel.width / 2, panel.y);
  await mouse.down();
  await mouse.move(panel.x + panel.width / 2, panel.y + panel.height - height, { steps: 5 });
  await mouse.up();
  await mouse.move(panel.x + panel.width / 2, 10);
}

/** Return whether an element appears within a moment. */
export async function appears(locator: Locator): Promise<boolean> {
  return locator.waitFor({ timeout: 3_000 }).then(
    () => true,
    () => false,
  );
}
