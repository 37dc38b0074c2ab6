import type { Workbench } from "../../harness/browser";

/** Tests that need only files and a server, and share a window with others. */
export interface Part {
  files: Record<string, string>;
  /** The only open file at their start. */
  open: string;
  tests: (workbench: Workbench) => void;
}
