import { existsSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { launchBrowser } from "./harness/browser";
import type { Result } from "./harness/mocha";
import { ARTIFACTS, OUT, VSIX } from "./harness/paths";
import { type Run, runHostSuite, runUiSuite } from "./harness/session";
import type { HostSuite, UiSuite } from "./harness/suite";

const USAGE = `node test/out/run.js [host|ui] [SUITE] [--title PART] [--keep] [--vsix FILE]
  host, ui   the tests in the extension host, or those on the window; else both
  SUITE      a part of the names of the suites that are to run; else all
  --title    a part of the titles of the tests that are to run; else all
  --keep     keep logs and a picture of every suite in test/artifacts, not only where a test fails
  --vsix     the packaged extension; else that of this platform`;

interface Job {
  name: string;
  suite: string;
  run: (run: Run) => Promise<void>;
}

/** The bundled test files of a folder, with the suites that each has. */
async function suitesIn<Suite>(kind: string): Promise<{ file: string; suites: Suite[] }[]> {
  const folder = join(OUT, kind);
  const names = (await readdir(folder)).filter((name) => name.endsWith(".test.js")).sort();
  return Promise.all(
    names.map(async (name) => {
      const { suites } = (await import(join(folder, name))) as { suites: Suite[] };
      return { file: join(OUT, "inside", kind, name), suites };
    }),
  );
}

async function jobs(): Promise<Job[]> {
  const host = (await suitesIn<HostSuite>("host")).flatMap(({ file, suites }) =>
    suites.map((suite) => ({
      name: `host ${suite.name}`,
      suite: suite.name,
      run: (run: Run) => runHostSuite(run, suite, file),
    })),
  );
  const ui = (await suitesIn<UiSuite>("ui")).flatMap(({ suites }) =>
    suites.map((suite) => ({
      name: `ui ${suite.name}`,
      suite: suite.name,
      run: (run: Run) => runUiSuite(run, suite),
    })),
  );
  return [...host, ...ui];
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

function print({ title, state, milliseconds, error }: Result): void {
  console.log(`  ${state.padEnd(7)} ${title} (${seconds(milliseconds)})`);
  if (error !== undefined) console.log(error.replace(/^/gm, "          "));
}

/** Run a job; returns the results, which are printed as they arrive. */
async function attempt(job: Job, run: Omit<Run, "tell">): Promise<Result[]> {
  const before = Date.now();
  const results: Result[] = [];
  await job.run({
    ...run,
    tell(result) {
      results.push(result);
      print(result);
    },
  });
  console.log(`          ${seconds(Date.now() - before)} in all`);
  return results;
}

/**
 * Run the jobs one after the other; returns whether there were tests and all passed. A job with a failure
 * runs once more in a fresh VS Code, and the second result counts: on a busy machine a window sometimes
 * loses a key.  The first failure stays in the output.
 */
async function work(chosen: Job[], options: Pick<Run, "vsix" | "title" | "keep">): Promise<boolean> {
  const started = Date.now();
  const results: Result[] = [];
  const browser = await launchBrowser();
  try {
    for (const job of chosen) {
      console.log(job.name);
      let ended = await attempt(job, { ...options, browser });
      if (ended.some(({ state }) => state === "failed")) {
        console.log(`${job.name}, once more in a fresh VS Code`);
        const kept = join(ARTIFACTS, `${job.suite}, at first`);
        await rm(kept, { recursive: true, force: true });
        // It does not exist if VS Code did not start.
        if (existsSync(join(ARTIFACTS, job.suite))) await rename(join(ARTIFACTS, job.suite), kept);
        ended = await attempt(job, { ...options, browser });
      }
      results.push(...ended.map((result) => ({ ...result, title: `${job.name}: ${result.title}` })));
    }
  } finally {
    await browser.close();
  }
  const count = (state: Result["state"]): number => results.filter((result) => result.state === state).length;
  const counts = (["passed", "failed", "skipped"] as const).map(
    (state) => `${String(count(state))} ${state}`,
  );
  const failures = results.filter(({ state }) => state === "failed");
  if (failures.length > 0) console.log("What failed:");
  failures.forEach(print);
  console.log(`${counts.join(", ")} in ${seconds(Date.now() - started)}`);
  return count("failed") === 0 && count("passed") > 0;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      title: { type: "string" },
      keep: { type: "boolean", default: false },
      vsix: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const vsix = resolve(values.vsix ?? VSIX);
  if (!existsSync(vsix)) throw new Error(`${vsix} is missing: npm run package`);
  const kind = positionals[0] === "host" || positionals[0] === "ui" ? positionals.shift() : undefined;
  const part = positionals[0] ?? "";
  const chosen = (await jobs()).filter(
    ({ name }) => (kind === undefined || name.startsWith(`${kind} `)) && name.includes(part),
  );
  if (chosen.length === 0) throw new Error(`no suite has ${part} in its name`);
  return (await work(chosen, { vsix, title: values.title, keep: values.keep })) ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
main().then(
  (status) => (process.exitCode = status),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  },
);
