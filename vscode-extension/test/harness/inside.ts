import { runTests } from "./mocha";
import type { HostSuite } from "./suite";

/** The prefix of console lines that report a test. */
export const MARK = "trainshift-test ";
/** The environment variables that select the tests to run. */
export const FILE = "TRAINSHIFT_TEST_FILE";
export const SUITE = "TRAINSHIFT_TEST_SUITE";
export const TITLE = "TRAINSHIFT_TEST_TITLE";

/** VS Code calls this in the extension host. */
export async function run(): Promise<void> {
  const file = (await import(process.env[FILE] ?? "")) as { suites: HostSuite[] };
  const suite = file.suites.find((each) => each.name === process.env[SUITE]);
  if (suite === undefined) throw new Error(`no suite ${String(process.env[SUITE])}`);
  await runTests(suite.tests, process.env[TITLE], (result) => {
    console.log(MARK + JSON.stringify(result));
  });
}
