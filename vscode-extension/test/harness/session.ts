import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { BrowserContext } from "playwright-core";
import { Workbench } from "./browser";
import { CodeServer } from "./codeServer";
import { FILE, MARK, SUITE, TITLE } from "./inside";
import { described, type Result, runTests } from "./mocha";
import { ARTIFACTS, DRIVER, OUT } from "./paths";
import type { HostSuite, Launch, UiSuite } from "./suite";

/** Requirements of tests in the extension host; with this flag VS Code refuses to show a dialog. */
const DRIVER_FLAG = "--enable-smoke-test-driver";
/** The time that the extension host may be silent: longer than any test takes. */
const SILENCE_LIMIT = 300_000;

/** The common options of the suites in one run. */
export interface Run {
  browser: BrowserContext;
  vsix: string;
  /** A part of the titles of the tests to run, unless all are. */
  title: string | undefined;
  /** Return whether the logs of suites without failures are kept as well. */
  keep: boolean;
  tell: (result: Result) => void;
}

/** Run a suite's tests in the extension host of a separate VS Code; `file` is their bundle. */
export async function runHostSuite(run: Run, suite: HostSuite, file: string): Promise<void> {
  const environment = { [FILE]: file, [SUITE]: suite.name, [TITLE]: run.title };
  await inSession(run, suite, environment, [DRIVER_FLAG], async (session, tell) => {
    let heard = Date.now();
    let status: number | undefined;
    const { server } = session;
    const url = server.url(
      ["extensionDevelopmentPath", server.remote(DRIVER)],
      ["extensionTestsPath", server.remote(join(OUT, "inside", "harness", "inside.js"))],
    );
    await session.open(url, {
      codeAutomationLog(_level, parameters) {
        heard = Date.now();
        resultsIn(parameters).forEach(tell);
      },
      codeAutomationExit(code) {
        status = Number(code);
      },
    });
    while (status === undefined) {
      if (Date.now() - heard > SILENCE_LIMIT) throw new Error("nothing was heard of the extension host");
      await sleep(50);
    }
    if (status !== 0) throw new Error(`the extension host ended its tests with status ${String(status)}`);
  });
}

/** Run a suite's tests on the window of a separate VS Code. */
export async function runUiSuite(run: Run, suite: UiSuite): Promise<void> {
  await inSession(run, suite, {}, [], async (session, tell) => {
    const workbench = await session.open(session.server.url());
    await workbench.ready(suite.open);
    const define = (): void => {
      afterEach(async function () {
        const test = this.currentTest;
        if (test?.state === "failed")
          await workbench.screenshot(join(suite.name, test.title.replaceAll("/", " ")));
      });
      suite.tests(workbench);
    };
    await runTests(define, run.title, tell);
  });
}

/** A server and its window. */
class Session {
  workbench: Workbench | undefined;

  constructor(
    readonly server: CodeServer,
    private readonly browser: BrowserContext,
  ) {}

  async open(
    url: string,
    functions: Record<string, (...parameters: unknown[]) => void> = {},
  ): Promise<Workbench> {
    this.workbench = await Workbench.open(this.browser, url, this.server.workspace, functions);
    return this.workbench;
  }

  async keep(folder: string): Promise<void> {
    await this.server.keepLogs(join(ARTIFACTS, folder));
    await this.workbench?.keepConsole(join(ARTIFACTS, folder));
    await this.workbench?.screenshot(join(folder, "at the end")).catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.workbench?.close();
    await this.server.stop();
  }
}

/** Run the body; if a test or everything fails, report it and keep a screenshot and the logs. */
async function inSession(
  run: Run,
  suite: Launch,
  environment: NodeJS.ProcessEnv,
  flags: string[],
  body: (session: Session, tell: Run["tell"]) => Promise<void>,
): Promise<void> {
  const started = Date.now();
  await rm(join(ARTIFACTS, suite.name), { recursive: true, force: true });
  let failed = false;
  let told = 0;
  const tell = (result: Result): void => {
    told += 1;
    failed ||= result.state === "failed";
    run.tell(result);
  };
  let session: Session | undefined;
  try {
    session = new Session(await CodeServer.start(suite, run.vsix, environment, flags), run.browser);
    await body(session, tell);
    if (told === 0 && run.title === undefined) throw new Error("it has no tests");
  } catch (error) {
    const milliseconds = Date.now() - started;
    tell({ title: "the suite as a whole", state: "failed", milliseconds, error: described(error) });
  } finally {
    if (failed || run.keep) await session?.keep(suite.name);
    await session?.close();
  }
}

/** The results in the extension host's console output. */
function resultsIn(parameters: unknown): Result[] {
  const texts = Array.isArray(parameters) ? parameters.filter((each) => typeof each === "string") : [];
  return texts
    .filter((each) => each.startsWith(MARK))
    .map((each) => JSON.parse(each.slice(MARK.length)) as Result);
}
