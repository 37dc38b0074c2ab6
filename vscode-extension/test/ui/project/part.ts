import type { Workbench } from "../../harness/browser";

/** Tests that need nothing but files and a server, and share a window with others. */
export interface Part {
  files: Record<string, string>;
  /** The file that is open, alone, when they begin. */
  open: string;
  tests: (workbench: Workbench) => void;
}
