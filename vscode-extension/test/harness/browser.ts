import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { KEYS } from "./codeServer";
import { ARTIFACTS, CHROMIUM } from "./paths";
import { TIME_LIMIT, until } from "./until";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // A window lives for a minute: optimizing its code costs more than it saves.
  "--js-flags=--no-opt",
];
/** State that a window stores and the next one would read. */
const STORED = "cookies,local_storage,indexeddb,service_workers";
const SIZE = { width: 1280, height: 800 };
/** The time that a menu or a list may take to appear. */
const MENU_LIMIT = 4_000;

const MENU = ".action-widget:not(.action-list-submenu-panel)";
const FOCUSED = ".editor-group-container.active .monaco-editor.focused";
const QUICK_INPUT = ".quick-input-widget";
/** The selector of a row of a list. */
const ROW_LABEL = ".monaco-icon-label-container";

export type Severity = "error" | "warning" | "info" | "hint";

/** Ways to ask for a title: the whole text, or a pattern. */
type Label = string | RegExp;

/** The browser of all windows: it keeps its compiled code of VS Code for the next one. */
export async function launchBrowser(): Promise<BrowserContext> {
  const profile = await mkdtemp(join(tmpdir(), "trainshift-browser-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    args: FLAGS,
    viewport: SIZE,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  browser.once(
    "close",
    () => void rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }),
  );
  return browser;
}

/** The labels of the buttons of messages that are not shown whole. */
const CUT_BUTTONS = `
  [...document.querySelectorAll(".notifications-toasts .monaco-button, .monaco-dialog-box .monaco-button")]
    .filter((each) => {
      const { left, right, width } = each.getBoundingClientRect();
      return width > 0 && (each.scrollWidth > each.clientWidth || left < 0 || right > innerWidth);
    })
    .map((each) => each.textContent)`;

/** A window of VS Code, operated by keys and read from the screen. */
export class Workbench {
  private readonly console: string[] = [];

  private constructor(
    readonly page: Page,
    readonly workspace: string,
  ) {
    page.setDefaultTimeout(TIME_LIMIT);
    page.on("console", (message) => this.console.push(`${message.type()}: ${message.text()}`));
  }

  /** A window without earlier state; `expose` gives the page functions before it loads. */
  static async open(
    browser: BrowserContext,
    url: string,
    workspace: string,
    expose: Record<string, (...parameters: unknown[]) => void> = {},
  ): Promise<Workbench> {
    const page = await browser.newPage();
    for (const [name, call] of Object.entries(expose)) await page.exposeFunction(name, call);
    const workbench = new Workbench(page, workspace);
    await page.goto(url);
    return workbench;
  }

  /** Close the window, and delete its stored state. */
  async close(): Promise<void> {
    const session = await this.page.context().newCDPSession(this.page);
    const { origin } = new URL(this.page.url());
    await this.page.goto("about:blank");
    await session.send("Storage.clearDataForOrigin", { origin, storageTypes: STORED });
    await this.page.close();
  }

  /** Wait until the window is ready, with this file open if one is given. */
  async ready(file?: string): Promise<void> {
    await this.page.locator(".monaco-workbench").waitFor();
    await this.page.locator(".part.statusbar .statusbar-item").first().waitFor();
    if (file !== undefined) await this.shows(file);
  }

  /** Open a file of the workspace, or show it if it is open. */
  async openFile(file: string): Promise<void> {
    // Before the filter applies, the list shows recently opened files, which may have the same name.
    const folder = dirname(file);
    const label = folder === "." ? file : `${basename(file)}${folder}`;
    await this.askFor("Control+P", join(this.workspace, file), label);
    await this.shows(file);
  }

  /** Put the cursor at a place of the open file; both count from 1. */
  async placeCursor(line: number, column = 1): Promise<void> {
    await this.focusEditor();
    await until(`the cursor is on line ${line}`, async () => {
      await this.askFor("Control+G", `:${line}:${column}`);
      return shown(this.page.locator(".part.statusbar").getByText(`Ln ${line},`));
    });
  }

  async focusEditor(): Promise<void> {
    await this.press(KEYS.focusEditor.key);
    await until("an editor has the focus", async () => shown(this.page.locator(FOCUSED)));
  }

  /** Save and close everything, so that the window is as it was at first. */
  async tidy(): Promise<void> {
    await this.press(KEYS.tidy.key);
    for (const part of [".tabs-container .tab", ".notification-list-item", ".part.panel"])
      await this.page.locator(part).first().waitFor({ state: "hidden" });
    await this.page.locator(".explorer-folders-view").waitFor();
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Choose a command in the palette, which lists it by category and title. */
  async runCommand(title: string): Promise<void> {
    await this.askFor("F1", `>${title}`, title);
  }

  async waitForSquiggle(severity: Severity = "warning"): Promise<void> {
    await this.page.locator(`.monaco-editor .squiggly-${severity}`).first().waitFor();
  }

  async waitForNoSquiggle(severity: Severity = "warning"): Promise<void> {
    await until(`no ${severity} is shown`, async () => {
      return (await this.page.locator(`.monaco-editor .squiggly-${severity}`).count()) === 0;
    });
  }

  /** The rows of the Problems panel, including files; opens the panel. */
  async problems(): Promise<string[]> {
    await this.showProblems();
    return this.page.locator(".markers-panel .monaco-list-row").allInnerTexts();
  }

  /** The row of the Problems panel with this text, once it appears. */
  async problem(text: string | RegExp): Promise<Locator> {
    await this.showProblems();
    const row = this.page.locator(".markers-panel .monaco-list-row", { hasText: text }).first();
    await row.waitFor();
    return row;
  }

  /** The actions of the light bulb at the cursor. */
  async quickFixes(): Promise<string[]> {
    await this.openMenu("Control+.");
    const titles = await this.page.locator(`${MENU} .monaco-list-row.action .title`).allInnerTexts();
    await this.press("Escape");
    return titles;
  }

  async quickFix(label: Label): Promise<void> {
    await this.chooseAction("Control+.", label);
  }

  async refactor(label: Label): Promise<void> {
    await this.chooseAction("Control+Shift+R", label);
  }

  async sourceAction(label: Label): Promise<void> {
    await this.chooseAction(() => this.runCommand("Source Action..."), label);
  }

  /** The notification with this text, once it appears. */
  async toast(text: string | RegExp): Promise<Locator> {
    const toast = this.page
      .locator(".notifications-toasts .notification-list-item", { hasText: text })
      .first();
    await toast.waitFor();
    return toast;
  }

  /** Press a button of a notification. */
  async answerToast(text: string | RegExp, button: string): Promise<void> {
    const toast = await this.toast(text);
    await toast.locator(".monaco-button", { hasText: button }).click();
  }

  /** The whole text in the focused editor, saved or not. */
  async editorText(): Promise<string> {
    await this.page.evaluate('navigator.clipboard.writeText("")');
    await this.focusEditor();
    await this.press("Control+A", "Control+C");
    const text = await until("the text is on the clipboard", () =>
      this.page.evaluate<string>("navigator.clipboard.readText()"),
    );
    await this.press("Control+U");
    return text;
  }

  /** Wait until the focused editor has this text. */
  async waitForText(wanted: string): Promise<void> {
    let text = "";
    const holds = async (): Promise<boolean> => (text = await this.editorText()) === wanted;
    await until("the editor holds the text", holds).catch(() => assert.equal(text, wanted));
  }

  /** Save the open file; returns its contents. */
  async savedText(file: string): Promise<string> {
    await this.runCommand("File: Save");
    await this.page.locator(".tabs-container .tab.active:not(.dirty)", { hasText: basename(file) }).waitFor();
    return readFile(join(this.workspace, file), "utf8");
  }

  /** Save a screenshot of the window as `NAME.png` among the artifacts; no button in it may be cut. */
  async screenshot(name: string): Promise<void> {
    const path = join(ARTIFACTS, `${name}.png`);
    await mkdir(dirname(path), { recursive: true });
    await this.page.screenshot({ path, animations: "disabled" });
    const cut: string[] = await this.page.evaluate(CUT_BUTTONS);
    if (cut.length > 0) throw new Error(`buttons are cut in ${name}: ${cut.join(", ")}`);
  }

  /** Save a screenshot for the docs: only the editors and the panel, in a window wide enough for the text. */
  async picture(name: string, width: number, height = SIZE.height): Promise<void> {
    const { page } = this;
    await page.setViewportSize({ width, height });
    await page.mouse.move(20, Math.min(420, height - 160)); // Nothing is there that would tell what it is.
    await sleep(1_000);
    const boxes = await Promise.all(
      [".part.editor", ".part.panel"].map((part) => page.locator(part).boundingBox()),
    );
    const [top, bottom = top] = boxes.filter((box) => box !== null);
    if (!top || !bottom) throw new Error("no editor is shown");
    const clip = { ...top, height: bottom.y + bottom.height - top.y };
    await page.screenshot({ path: join(ARTIFACTS, `${name}.png`), animations: "disabled", clip });
    await page.setViewportSize(SIZE);
  }

  async keepConsole(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "console.log"), this.console.join("\n"));
  }

  private async shows(file: string): Promise<void> {
    const path = `/${basename(this.workspace)}/${file}`;
    const label = ".tabs-container .tab.active .tab-label";
    // The number of problems of a file follows its path.
    await this.page.locator(`${label}[aria-label$="${path}"], ${label}[aria-label*="${path} "]`).waitFor();
    await this.page.locator(".editor-instance .monaco-editor .view-line").first().waitFor();
  }

  private async showProblems(): Promise<void> {
    await this.press(KEYS.showProblems.key);
    await this.page.locator(".markers-panel").waitFor();
  }

  /**
   * Enter a text into the input that a key opens, and accept the row with this label, else the first. The
   * label of a file in a folder is its name followed directly by its folder.
   */
  private async askFor(key: string, text: string, label?: string): Promise<void> {
    const input = this.page.locator(`${QUICK_INPUT} input[type=text]`);
    const focused = this.page.locator(`${QUICK_INPUT} input[type=text]:focus`);
    await this.tryUntil(`"${text}" can be chosen`, async () => {
      await this.press(key);
      if (!(await shown(input))) return false;
      // The input closes if another element takes the focus.
      if (!(await succeeds(input.fill(text, { timeout: MENU_LIMIT })))) return false;
      const row = `${QUICK_INPUT} .monaco-list-row`;
      if (label !== undefined && !(await this.moveTo(row, ROW_LABEL, label))) return false;
      return (await focused.count()) > 0;
    });
    await this.press("Enter");
    // A command may continue with a list of its own.
    await until(`"${text}" is taken`, async () => {
      return !(await input.isVisible()) || (await input.inputValue()) !== text;
    });
  }

  private async chooseAction(open: string | (() => Promise<void>), label: Label): Promise<void> {
    await this.tryUntil(`the action ${String(label)} can be chosen`, async () => {
      await this.openMenu(open);
      return this.moveTo(`${MENU} .monaco-list-row`, ".title", label);
    });
    await this.press("Enter");
    await this.page.locator(MENU).waitFor({ state: "hidden" });
  }

  /** Open a menu of actions, and reopen it if it closes by itself. */
  private async openMenu(open: string | (() => Promise<void>)): Promise<void> {
    await this.tryUntil("a menu of actions is open", async () => {
      await (typeof open === "string" ? this.press(open) : open());
      return shown(this.page.locator(`${MENU} .monaco-list-row.action`).first());
    });
  }

  /** Press Escape to close the leftovers of an attempt before the next one. */
  private async tryUntil(what: string, attempt: () => Promise<boolean>): Promise<void> {
    await until(what, async () => {
      const done = await attempt();
      if (!done) await this.press("Escape");
      return done;
    });
  }

  /** Press ArrowDown until the row with this label is selected; a click on a menu row hangs. */
  private async moveTo(row: string, part: string, label: Label): Promise<boolean> {
    const wanted = this.page.locator(`${row} ${part}`).filter({ hasText: exactly(label) });
    if (!(await shown(wanted.first()))) return false;
    const chosen = this.page.locator(`${row}.focused ${part}`).filter({ hasText: exactly(label) });
    const rows = await this.page.locator(row).count();
    for (let step = 0; step <= rows; step += 1) {
      if ((await chosen.count()) > 0) return true;
      await this.press("ArrowDown");
    }
    return false;
  }
}

async function shown(locator: Locator): Promise<boolean> {
  return succeeds(locator.waitFor({ timeout: MENU_LIMIT }));
}

async function succeeds(attempt: Promise<void>): Promise<boolean> {
  return attempt.then(
    () => true,
    () => false,
  );
}

function exactly(label: Label): RegExp {
  if (label instanceof RegExp) return label;
  return new RegExp(`^\\s*${label.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(" ", "\\s")}\\s*$`);
}
