/** What the server answers beyond the protocol; `server/docs/editors.md` of the project describes it. */

import { Range, RequestType, WorkspaceEdit } from "vscode-languageclient/node";

/** The kind of the action that converts a statement, and of the command that converts a file. */
export const STATEMENT_KIND = "refactor.rewrite.distribute";
export const MAKE_DISTRIBUTED = "trainshift.makeDistributed";
/** What the line above a loop ends in that cannot be made distributed. */
export const NOT_DISTRIBUTABLE = "cannot be made distributed";
/** The command that differentiates a function. */
export const DIFFERENTIATE = "trainshift.differentiate";
/** The commands that rewrite functions which Paddle turns into a static graph. */
export const EXPAND_STATIC = "trainshift.expandStatic";
export const MAKE_STATIC = "trainshift.makeStatic";
/** The commands that lines and lenses lead to; the last two take a URI, and a line's number from 1. */
export const EXPLAIN = "trainshift.explain";
export const RUN = "trainshift.runWithHorovod";
export const PROVE = "trainshift.prove";
export const SHOW_WARNINGS = "trainshift.showWarnings";
export const CHOOSE_KERAS = "trainshift.chooseKeras";
export const CHOOSE_PYTHON = "trainshift.choosePython";
export const CHECK_HOROVOD = "trainshift.checkHorovod";
export const OPEN_LINE = "trainshift.openLine";
/** The code of what a project asks for and Horovod does not work with. */
export const UNSUPPORTED_VERSION = "TS04";

/** Something said of a place: `line` and `column` count from 1, in the document `uri`. */
export interface Note {
  readonly rule: string;
  readonly line: number;
  readonly column?: number;
  readonly uri?: string;
  readonly text: string;
  /** Of a change: the line at which it begins once it is made. */
  readonly newLine?: number;
  /** Of a change: all others are right without it. */
  readonly optional?: boolean;
}

/** What a conversion does, or why there is none (`reason`, with no `edit`). */
export interface Conversion {
  readonly applied: boolean;
  readonly reason: string;
  readonly status: string;
  /** The place of what stands in the way, and the code whose page explains it, where there is one. */
  readonly at?: Note | null;
  readonly code?: string;
  /** The files that change, in words; "" where that is the document alone. */
  readonly program: string;
  /** How many files change. */
  readonly files: number;
  readonly edit?: WorkspaceEdit | null;
  readonly changes: readonly Note[];
  readonly decisions: readonly Note[];
  readonly doubts: readonly Note[];
  readonly withheld: readonly Note[];
}

/** What becomes of a static function (of all of the file where `function` is ""), told as a conversion is. */
export interface StaticResult extends Conversion {
  readonly function: string;
  /** The rules of its changes. */
  readonly rules: readonly Rule[];
}

/** The derivative of a function, or why there is none (`reason`, with no `edit`). */
export interface Derivative {
  readonly reason: string;
  readonly function: string;
  /** The name of the new function. */
  readonly made: string;
  /** The parameters that it is differentiated by, and those that it is not unless somebody says so. */
  readonly wrt: readonly string[];
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[];
  /** Everything that stands in the way; lines and columns count from 1, in the document `uri`. */
  readonly refusals: readonly {
    readonly uri: string;
    readonly line: number;
    readonly column: number;
    readonly message: string;
  }[];
  readonly edit?: WorkspaceEdit | null;
}

/** The training loops of a document, and what a conversion of its program would come to. */
export interface Outline {
  readonly version: number | null;
  /** The files that would change, in words; "" where that is the document alone. */
  readonly program: string;
  /** Of a module: the name and the URI of the file that starts its program, and how many files that has. */
  readonly partOf: { readonly name: string; readonly uri: string; readonly files: number } | null;
  readonly loops: readonly { readonly name: string; readonly uri: string; readonly range: Range }[];
  readonly status: string;
  readonly reason: string;
  readonly changes: number;
  /** For which Keras a conversion is written, and why; "" where nothing trains. */
  readonly keras: string;
  readonly warnings: number;
  readonly usesTensorflow: boolean;
}

/** A code, and the URI of its page. */
export interface Rule {
  readonly code: string;
  readonly name: string;
  readonly title: string;
  readonly url: string;
}

export const OutlineRequest = new RequestType<{ textDocument: { uri: string } }, Outline | null, void>(
  "trainshift/outline",
);
/** The URIs of the Python files in the workspace's folders that use TensorFlow. */
export const ScriptsRequest = new RequestType<object, string[], void>("trainshift/scripts");
export const RulesRequest = new RequestType<object, Rule[], void>("trainshift/rules");
