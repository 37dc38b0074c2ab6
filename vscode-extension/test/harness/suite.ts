import type { Workbench } from "./browser";

/** One fresh VS Code, shared by the tests of a suite. */
export interface Launch {
  name: string;
  /** The files of the opened folder, by relative path; one that begins with `#!` is executable. */
  workspace?: Record<string, string>;
  /** Further preparation of that folder before VS Code starts. */
  prepare?: (workspace: string) => Promise<void> | void;
  /** The file that is open from the start. */
  open?: string;
  /**
   * User settings, besides those that keep VS Code quiet.  `<workspace>` in a text is replaced by the
   * folder.
   */
  settings?: Record<string, unknown>;
  /** Changes to the environment; undefined removes a variable.  `<workspace>` is replaced by the folder. */
  env?: Record<string, string | undefined>;
  /** Folders of extensions that are installed besides the one under test. */
  extensions?: string[];
  /** False opens the folder in restricted mode. */
  trusted?: boolean;
}

/** Tests that run in the extension host, with access to `vscode`; `tests` calls mocha's functions. */
export interface HostSuite extends Launch {
  tests: () => void;
}

/** Tests that use VS Code like a person. */
export interface UiSuite extends Launch {
  tests: (workbench: Workbench) => void;
}
