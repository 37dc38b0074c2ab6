/**
 * The answers of the server beyond the protocol; `server/docs/editors.md` of the project describes them.
 *
 * Written by `make docs` from the server's definitions (`trainshift/lsp/transport/told.py`): do not edit.
 */

import { Range, RequestType, WorkspaceEdit } from "vscode-languageclient/node";

/** The kind of the action that converts a statement. */
export const STATEMENT_KIND = "refactor.rewrite.distribute";
/** The command that converts a file. */
export const MAKE_DISTRIBUTED = "trainshift.makeDistributed";
/** The command that differentiates a function. */
export const DIFFERENTIATE = "trainshift.differentiate";
/** The command that expands static functions. */
export const EXPAND_STATIC = "trainshift.expandStatic";
/** The command that makes a function static. */
export const MAKE_STATIC = "trainshift.makeStatic";
/** The command that shows the page of a code. */
export const EXPLAIN = "trainshift.explain";
/** The command that shows a line, counted from 1, of a URI. */
export const OPEN_LINE = "trainshift.openLine";
/** The command that shows the warnings of a document. */
export const SHOW_WARNINGS = "trainshift.showWarnings";
/** The end of the line above a loop that no rank but one can train. */
export const NOT_DISTRIBUTABLE = "cannot be made distributed";
/** The code of a version that Horovod does not work with. */
export const UNSUPPORTED_VERSION = "TS04";

/** A remark about a place: `line` and `column` count from 1, in the document `uri`. */
export interface Note {
  readonly rule: string;
  readonly line: number;
  readonly text: string;
  readonly column?: number;
  readonly uri?: string;
  /** The first line of the change in the result. */
  readonly newLine?: number;
  /** True if all other changes are right without this one. */
  readonly optional?: boolean;
}

/** The result of a conversion, or the `reason` why there is none (then it has no `edit`). */
export interface Conversion {
  readonly applied: boolean;
  readonly reason: string;
  readonly status: string;
  /** The files that change, in words; "" if it is only the document. */
  readonly program: string;
  /** The number of files that change. */
  readonly files: number;
  readonly changes: readonly Note[];
  readonly decisions: readonly Note[];
  readonly doubts: readonly Note[];
  readonly withheld: readonly Note[];
  /** The place of the obstacle. */
  readonly at?: Note | null;
  /** The code whose page explains the obstacle; "" if there is none. */
  readonly code?: string;
  readonly edit?: WorkspaceEdit | null;
}

/** A code, and the URI of its page. */
export interface Rule {
  readonly code: string;
  readonly name: string;
  readonly title: string;
  readonly url: string;
}

/** The result of rewriting a static function, or a whole file if `function` is "". */
export interface StaticResult extends Conversion {
  readonly function: string;
  /** The rules of its changes. */
  readonly rules: readonly Rule[];
}

/** A parameter without a derivative, unless it is requested by name. */
export interface LeftOut {
  readonly name: string;
  readonly reason: string;
}

/** A place that prevents a derivative; `line` and `column` count from 1. */
export interface Refusal {
  readonly uri: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** The derivative of a function, or the `reason` why there is none (then it has no `edit`). */
export interface Derivative {
  readonly applied: boolean;
  readonly reason: string;
  readonly function: string;
  readonly mode: string;
  /** The name of the new function. */
  readonly made: string;
  readonly added: readonly string[];
  /** The parameters that the function is differentiated by. */
  readonly wrt: readonly string[];
  readonly leftOut: readonly LeftOut[];
  readonly refusals: readonly Refusal[];
  readonly edit?: WorkspaceEdit | null;
}

/** A training loop: the name of its kind, and its header. */
export interface Loop {
  readonly name: string;
  readonly uri: string;
  readonly range: Range;
}

/** The program of a module: the name and the URI of its start file, and its number of files. */
export interface PartOf {
  readonly name: string;
  readonly uri: string;
  readonly files: number;
}

/** The training loops of a document, and the result that a conversion of its program would have. */
export interface Outline {
  readonly version: number | null;
  readonly loops: readonly Loop[];
  /** The files that would change, in words; "" if it is only the document. */
  readonly program: string;
  /** The program of a module; null for a file that starts one. */
  readonly partOf: PartOf | null;
  readonly status: string;
  readonly reason: string;
  readonly changes: number;
  readonly files: readonly string[];
  /** The target Keras of a conversion, with the reason; "" if nothing trains. */
  readonly keras: string;
  readonly warnings: number;
  readonly usesTensorflow: boolean;
}

export const OutlineRequest = new RequestType<{ textDocument: { uri: string } }, Outline | null, void>(
  "trainshift/outline",
);
/** The URIs of the Python files in the workspace's folders that use TensorFlow. */
export const ScriptsRequest = new RequestType<object, string[], void>("trainshift/scripts");
export const RulesRequest = new RequestType<object, Rule[], void>("trainshift/rules");
