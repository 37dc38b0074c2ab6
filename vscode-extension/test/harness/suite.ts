import type { Workbench } from "./browser";

/** One VS Code, started afresh; the tests of a suite share it. */
export interface Launch {
  name: string;
  /** The files of the folder that is opened, by their path in it; one that begins with `#!` is executable. */
  workspace?: Record<string, string>;
  /** What else is to be done in that folder before VS Code starts. */
  prepare?: (workspace: string) => Promise<void> | void;
  /** The file that is open from the start. */
  open?: string;
  /** User settings, beside those that keep VS Code quiet.  `<workspace>` in a text stands for the folder. */
  settings?: Record<string, unknown>;
  /** Changes to the environment; undefined removes a variable.  `<workspace>` stands for the folder. */
  env?: Record<string, string | undefined>;
  /** Folders of extensions that are installed beside the one under test. */
  extensions?: string[];
  /** False opens the folder in restricted mode. */
  trusted?: boolean;
}

/** Tests that run in the extension host, where `vscode` is; `tests` calls mocha's functions. */
export interface HostSuite extends Launch {
  tests: () => void;
}

/** Tests that use VS Code as a person does. */
export interface UiSuite extends Launch {
  tests: (workbench: Workbench) => void;
}
