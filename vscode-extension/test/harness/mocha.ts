import { stripVTControlCharacters } from "node:util";
import Mocha from "mocha";

const TEST_LIMIT = 180_000;

/** The result of one test, or one hook. */
export interface Result {
  title: string;
  state: "passed" | "failed" | "skipped";
  milliseconds: number;
  error?: string;
}

type Tell = (result: Result) => void;

/** Run the tests that `define` makes, filtered by title if one is given, and report each as it ends. */
export async function runTests(define: () => void, title: string | undefined, tell: Tell): Promise<void> {
  const reporter = class extends Mocha.reporters.Base {
    constructor(runner: Mocha.Runner) {
      super(runner);
      follow(runner, tell);
    }
  };
  const mocha = new Mocha({
    reporter,
    timeout: TEST_LIMIT,
    ...(title === undefined ? {} : { fgrep: title }),
  });
  mocha.suite.emit("pre-require", globalThis, "", mocha);
  define();
  await new Promise((resolve) => mocha.run(resolve));
}

function follow(runner: Mocha.Runner, tell: Tell): void {
  const told = (test: Mocha.Runnable, state: Result["state"]): Result => ({
    title: test.titlePath().join(" "),
    state,
    milliseconds: test.duration ?? 0,
  });
  runner.on("pass", (test) => {
    tell(told(test, "passed"));
  });
  runner.on("pending", (test) => {
    tell(told(test, "skipped"));
  });
  runner.on("fail", (test, error: unknown) => {
    tell({ ...told(test, "failed"), error: described(error) });
  });
}

export function described(error: unknown): string {
  return stripVTControlCharacters(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
