/** "Make Distributed": the whole program, with a preview before it and a summary after it. */

import * as vscode from "vscode";
import {
  CodeAction,
  CodeActionRequest,
  CodeActionResolveRequest,
  Command,
  ExecuteCommandRequest,
  LanguageClient,
  TextDocumentEdit,
} from "vscode-languageclient/node";

import { cellNumber, inFront, isLookedAt, nameOf, notebookOf, placed, reveal } from "./documents";
import { explain } from "./pages";
import { Preview, Proposal } from "./preview";
import { PROVE, RUN } from "./commands";
import {
  Conversion,
  MAKE_DISTRIBUTED,
  Note,
  RulesRequest,
  STATEMENT_KIND,
  UNSUPPORTED_VERSION,
} from "./protocol";
import { Server } from "./server";
import { moved, Section, Summary, warningsIn } from "./summary";
import { asSentence, capitalized, counted } from "./words";

/** The number of times that more files are opened because they turn out to belong to the program. */
const MOST_TURNS = 3;

// Three buttons of a message fit in this width.
const SHOW_SUMMARY = "Summary";
const PROVE_IT = "Prove…";
const RUN_IT = "Run…";

/** Converts whole documents, and reports the result. */
export class Converter {
  constructor(
    private readonly server: Server,
    private readonly preview: Preview,
    private readonly summary: Summary,
  ) {}

  /**
   * Convert a document: the one given by a URI or by an object with one, else the active one. An object can
   * set `ignoreVersions` to ignore the versions that its project requires.
   */
  async makeDistributed(given?: unknown): Promise<void> {
    const uri = await opened(given);
    if (uri === undefined) {
      const text = "Trainshift: open a Python script or a notebook to make it distributed.";
      void vscode.window.showInformationMessage(text);
      return;
    }
    const client = await this.server.ready();
    if (client === undefined) {
      return;
    }
    const name = nameOf(uri);
    const ignoreVersions = ignoresVersions(given);
    let conversion: Conversion;
    try {
      conversion = await planned(client, uri, name, { ignoreVersions });
    } catch (error) {
      warn(`${name} could not be read: ${String(error)}`);
      return;
    }
    if (conversion.edit) {
      await this.propose(client, uri, conversion.program || name, conversion, ignoreVersions);
    } else {
      void this.refuse(uri, name, conversion);
    }
  }

  /** Show the full reason why nothing is changed, with links to the place and to the explanation. */
  private async refuse(
    uri: vscode.Uri,
    name: string,
    { status, reason, at, code }: Conversion,
  ): Promise<void> {
    const isDone = status === "already distributed";
    const title = `${name} is ${isDone ? "distributed already" : "not changed"}.`;
    const actions: Record<string, () => unknown> = {};
    if (at?.uri !== undefined) {
      const place = vscode.Uri.parse(at.uri);
      actions[titleOf(place, at.line, uri)] = () => reveal(place, at.line, at.column);
    }
    if (code === UNSUPPORTED_VERSION) {
      actions["Convert Anyway"] = () => this.makeDistributed({ uri: uri.toString(), ignoreVersions: true });
    }
    if (code) {
      actions["Why?"] = () => explain(this.server, code);
    }
    const options = { modal: true, detail: asSentence(reason) };
    const show = isDone ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
    const buttons = Object.keys(actions).map((each) => ({ title: each }));
    const close = { title: "Close", isCloseAffordance: true };
    const choice = await show(`Trainshift: ${title}`, options, ...buttons, close);
    await actions[choice?.title ?? ""]?.();
  }

  /** Show the changes in all files, and apply them at once on request. */
  private async propose(
    client: LanguageClient,
    uri: vscode.Uri,
    name: string,
    first: Conversion,
    ignoreVersions: boolean,
  ): Promise<void> {
    const proposed = async (conversion: Conversion): Promise<Proposal | undefined> => {
      const { edit } = conversion;
      return edit
        ? { conversion, edit: await client.protocol2CodeConverter.asWorkspaceEdit(edit) }
        : undefined;
    };
    const renew = async (leaveOut: readonly Note[]) =>
      proposed(await planned(client, uri, name, { ignoreVersions, leaveOut }));
    const rules = await client.sendRequest(RulesRequest, {});
    const proposal = await (isCurrent(first) ? proposed(first) : renew([]));
    const chosen = proposal && (await this.preview.ask(name, proposal, rules, renew));
    if (chosen === undefined) {
      return;
    }
    const { conversion, edit } = chosen;
    const [is, has] = conversion.files > 1 ? ["are", "have"] : ["is", "has"];
    if (!isCurrent(conversion)) {
      warn(`${name} ${has} changed since; nothing was converted. Run the command again.`);
    } else if (!(await vscode.workspace.applyEdit(edit))) {
      warn(`${name} ${is} not changed: VS Code has refused the edit.`);
    } else {
      const text = `${name} ${is} distributed: ${outcome(conversion)}.`;
      void this.conclude(client, uri, name, conversion, edit, text);
    }
  }

  /** Report the changes, and keep the whole result for the summary. */
  private async conclude(
    client: LanguageClient,
    document: vscode.Uri,
    name: string,
    conversion: Conversion,
    edit: vscode.WorkspaceEdit,
    text: string,
  ): Promise<void> {
    const changed = edit.entries().map(([uri]) => uri);
    const warnings = await warningsIn(client, changed);
    const { withheld, decisions, doubts, changes } = conversion;
    const section = (heading: string, lead: string, notes: readonly Note[]): Section => ({
      heading,
      lead,
      notes: moved(notes, edit),
    });
    this.summary.keep({
      name,
      document,
      text,
      isOneOfSeveral: conversion.program !== "",
      sections: [
        section("Left alone", "These may need your attention.", withheld),
        { heading: "Still warns", lead: "", notes: warnings },
        section("Decided", "Review these choices.", decisions),
        section("Assumed", "Please check.", doubts),
        {
          heading: "Changed",
          lead: "",
          notes: changes.map((note) => ({ ...note, line: note.newLine ?? note.line, column: 1 })),
        },
      ],
    });
    const also = warnings.length > 0 ? ` ${counted(warnings.length, "warning")} left.` : "";
    // A notebook cannot run on several processes.
    const next = notebookOf(document) === undefined ? [PROVE_IT, RUN_IT] : [];
    const choice = await vscode.window.showInformationMessage(
      `Trainshift: ${text}${also}`,
      SHOW_SUMMARY,
      ...next,
    );
    if (choice === SHOW_SUMMARY) {
      this.summary.show();
    } else if (choice === PROVE_IT) {
      await vscode.commands.executeCommand(PROVE, document.toString());
    } else if (choice === RUN_IT) {
      await vscode.commands.executeCommand(RUN, document.toString());
    }
  }
}

/** Convert the statement at the cursor, as its quick fix does, or say why there is nothing to do. */
export async function makeStatementDistributed(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const client = await server.ready();
  if (client === undefined) {
    return;
  }
  if (editor === undefined || !isLookedAt(editor.document)) {
    const text = "Trainshift: put the cursor on a statement of a Python script to make it distributed.";
    void vscode.window.showInformationMessage(text);
    return;
  }
  let problem = "Nothing to convert in this statement.";
  try {
    const { document, selection } = editor;
    const found = await client.sendRequest(CodeActionRequest.type, {
      textDocument: { uri: document.uri.toString() },
      range: client.code2ProtocolConverter.asRange(selection),
      context: { diagnostics: [], only: [STATEMENT_KIND] },
    });
    const actions = (found ?? []).filter((each): each is CodeAction => !Command.is(each));
    const chosen = actions.find((action) => action.disabled === undefined);
    if (chosen !== undefined) {
      const { edit } = await client.sendRequest(CodeActionResolveRequest.type, chosen);
      if (
        edit &&
        (await vscode.workspace.applyEdit(await client.protocol2CodeConverter.asWorkspaceEdit(edit)))
      ) {
        return;
      }
      problem = "VS Code has refused the edit.";
    } else if (actions[0]?.disabled !== undefined) {
      problem = `${problem} ${asSentence(actions[0].disabled.reason)}`;
    }
  } catch (error) {
    problem = `The statement could not be converted: ${error instanceof Error ? error.message : String(error)}`;
  }
  void vscode.window.showInformationMessage(`Trainshift: ${problem}`);
}

function warn(text: string): void {
  void vscode.window.showWarningMessage(`Trainshift: ${text}`);
}

/** The title of a button that leads from one document to a place in it or in another. */
function titleOf(place: vscode.Uri, line: number, from: vscode.Uri): string {
  const uri = place.toString();
  const isNear = uri === from.toString() || cellNumber(uri) !== undefined;
  const where = placed(uri, line).replaceAll(/line|cell/g, (word) => capitalized(word));
  return isNear ? `Go to ${where}` : `Open ${nameOf(place)}`;
}

/** The options of a conversion. */
interface Wish {
  readonly ignoreVersions?: boolean;
  /** Optional changes to leave out. */
  readonly leaveOut?: readonly Note[];
}

/** The result of converting a document; nothing is changed. */
export function plan(client: LanguageClient, uri: vscode.Uri, wish: Wish = {}): Promise<Conversion> {
  return client.sendRequest(ExecuteCommandRequest.type, {
    command: MAKE_DISTRIBUTED,
    arguments: [{ uri: uri.toString(), apply: false, ...wish }],
  }) as Promise<Conversion>;
}

/** Like `plan`, with progress in the status bar, and with all files open, so that each one has a version. */
function planned(client: LanguageClient, uri: vscode.Uri, name: string, wish: Wish): Promise<Conversion> {
  const options = { location: vscode.ProgressLocation.Window, title: `Trainshift: reading ${name}` };
  const work = async (): Promise<Conversion> => {
    let conversion = await plan(client, uri, wish);
    for (let turn = 0; turn < MOST_TURNS && closedIn(conversion).length > 0; turn += 1) {
      await Promise.all(closedIn(conversion).map((each) => vscode.workspace.openTextDocument(each)));
      conversion = await plan(client, uri, wish);
    }
    return conversion;
  };
  return Promise.resolve(vscode.window.withProgress(options, work));
}

/** The files that a conversion changes and that the server has no document for. */
function closedIn({ edit }: Conversion): vscode.Uri[] {
  const changes = (edit?.documentChanges ?? []).filter(TextDocumentEdit.is);
  return changes
    .filter(({ textDocument }) => textDocument.version === null)
    .map(({ textDocument }) => vscode.Uri.parse(textDocument.uri));
}

/** The document to convert, open so that the server knows it; undefined if it is not Python. */
async function opened(given: unknown): Promise<vscode.Uri | undefined> {
  const uri = uriOf(given) ?? vscode.window.activeNotebookEditor?.notebook.uri ?? inFront()?.uri;
  const notebook = uri && notebookOf(uri);
  if (uri === undefined || notebook !== undefined) {
    return notebook?.uri;
  }
  const document = await vscode.workspace.openTextDocument(uri);
  if (!isLookedAt(document)) {
    return undefined;
  }
  await vscode.window.showTextDocument(document, { preview: false });
  return uri;
}

function uriOf(given: unknown): vscode.Uri | undefined {
  if (given instanceof vscode.Uri) {
    return given;
  }
  const isHolder =
    typeof given === "object" && given !== null && "uri" in given && typeof given.uri === "string";
  return isHolder ? vscode.Uri.parse(given.uri as string) : undefined;
}

function ignoresVersions(given: unknown): boolean {
  return (
    typeof given === "object" && given !== null && "ignoreVersions" in given && given.ignoreVersions === true
  );
}

/** Return whether the documents still have the versions for which an edit was computed. */
export function isCurrent({ edit }: Pick<Conversion, "edit">): boolean {
  const open = vscode.workspace.textDocuments;
  const documentChanges = edit?.documentChanges ?? [];
  return documentChanges.filter(TextDocumentEdit.is).every(({ textDocument: { uri, version } }) => {
    const document = open.find((each) => each.uri.toString() === vscode.Uri.parse(uri).toString());
    return document?.version === version;
  });
}

function outcome(conversion: Conversion): string {
  const { changes, withheld, decisions, doubts } = conversion;
  const parts = [
    counted(changes.length, "change"),
    decisions.length > 0 ? counted(decisions.length, "decision") : "",
    doubts.length > 0 ? counted(doubts.length, "assumption") : "",
    withheld.length > 0 ? `${counted(withheld.length, "place")} left alone` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}
