/** A preview of a conversion: a diff, a list of its changes, and a decision. */

import * as vscode from "vscode";

import { ChangeList } from "./changeList";
import { Conversion, Note, Rule } from "./protocol";
import { isDiff, Pair, revealBefore, showDiff, Sides, tabsOf } from "./sides";
import { moved } from "./summary";

const CONTEXT = "trainshift.isPreviewing";
/** The endings of the titles of diffs. */
const MADE_DISTRIBUTED = " ↔ made distributed";
export const GRAPH_CODE = " ↔ graph code, for reading";
export const MADE_STATIC = " ↔ made static";

/** The changes that a conversion proposes for the documents as they are. */
export interface Proposal {
  readonly edit: vscode.WorkspaceEdit;
  readonly conversion: Conversion;
}

/** Computes a proposal again, without some optional changes; undefined if there is none. */
export type Renew = (leftOut: readonly Note[]) => Promise<Proposal | undefined>;

interface Shown {
  readonly title: string;
  readonly renew: Renew;
  readonly rules: readonly Rule[];
  readonly decide: (isApplied: boolean) => void;
  proposal: Proposal;
  pairs: readonly Pair[];
  leftOut: readonly Note[];
}

const PAUSE_MS = 300;

/** Shows one conversion at a time, until the user has decided. */
export class Preview implements vscode.Disposable {
  private readonly list = new ChangeList();
  private readonly sides = new Sides();
  private readonly disposables: vscode.Disposable[];
  private shown: Shown | undefined;
  private turn = 0;
  private last: Promise<Proposal | undefined> = Promise.resolve(undefined);
  private timer: NodeJS.Timeout | undefined;
  private renewals = 0;

  constructor() {
    // The diff of an earlier session has lost its right side.
    void vscode.window.tabGroups.close([MADE_DISTRIBUTED, GRAPH_CODE, MADE_STATIC].flatMap(tabsOf));
    this.disposables = [
      this.list,
      this.sides,
      this.list.onDidChoose((leftOut) => this.choose(leftOut)),
      vscode.workspace.onDidChangeTextDocument((event) => this.edited(event)),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        const title = this.shown?.title;
        if (title !== undefined && closed.some((tab) => isDiff(tab, title))) {
          // A tab that is moved is closed in one place and opened in another.
          setTimeout(() => title === this.shown?.title && tabsOf(title).length === 0 && this.decide(false));
        }
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.shown?.decide(false);
    this.disposables.forEach((each) => void each.dispose());
  }

  /**
   * The user's decision on a conversion of `name`; closing the diff means no. The title of the diff is the
   * name with an `ending`.
   */
  ask(
    name: string,
    proposal: Proposal,
    rules: readonly Rule[],
    renew: Renew,
    ending = MADE_DISTRIBUTED,
  ): Promise<Proposal | undefined> {
    this.shown?.decide(false);
    const turn = ++this.turn;
    const mine = this.last.then(() => this.run(turn, name, ending, proposal, rules, renew));
    this.last = mine.catch(() => undefined);
    return mine;
  }

  /** Show a line of a document, counted from 0, on the left side of the diff. */
  reveal(uri: string, line: number): void {
    const pair = this.shown?.pairs.find(({ document }) => document.toString() === uri);
    revealBefore(pair, line);
  }

  /** The user has decided. */
  decide(isApplied: boolean): void {
    this.shown?.decide(isApplied);
  }

  private async run(
    turn: number,
    name: string,
    ending: string,
    proposal: Proposal,
    rules: readonly Rule[],
    renew: Renew,
  ): Promise<Proposal | undefined> {
    const pairs = await this.sides.of(proposal.edit);
    if (turn !== this.turn) {
      return undefined;
    }
    const title = `${name}${ending}`;
    let shown: Shown | undefined;
    const decided = new Promise<boolean>((decide) => {
      shown = { title, renew, rules, decide, proposal, pairs, leftOut: [] };
      this.fill(shown);
    });
    await vscode.commands.executeCommand("setContext", CONTEXT, true);
    try {
      await this.list.open(name);
      // VS Code does not answer if another editor takes the place of the diff before it opens.
      await Promise.race([decided, showDiff(title, pairs).then(() => this.tidy(title))]);
      return (await decided) ? shown?.proposal : undefined;
    } finally {
      this.shown = undefined;
      this.sides.publish([]);
      await this.list.close();
      await vscode.commands.executeCommand("setContext", CONTEXT, false);
      await this.tidy(title);
    }
  }

  /** List the changes of a conversion, and return its sides. */
  private fill(shown: Shown): void {
    const { rules, leftOut, proposal, pairs } = shown;
    this.shown = shown;
    this.sides.publish(pairs);
    this.list.fill({ conversion: proposal.conversion, rules, leftOut, turn: this.turn });
  }

  /** The user has ticked or unticked changes. */
  private choose(leftOut: readonly Note[]): void {
    if (this.shown !== undefined) {
      this.shown.leftOut = leftOut;
      void this.refresh();
    }
  }

  /** A document has changed while its conversion is shown: the preview is outdated. */
  private edited({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const shown = this.shown;
    const isOurs = shown?.pairs.some((pair) => pair.document.toString() === document.uri.toString());
    if (shown === undefined || isOurs !== true || contentChanges.length === 0) {
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    edit.set(
      document.uri,
      contentChanges.map(({ range, text }) => vscode.TextEdit.replace(range, text)),
    );
    shown.leftOut = moved(shown.leftOut, edit);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), PAUSE_MS);
  }

  /** Show the current result of the conversion. */
  private async refresh(): Promise<void> {
    const shown = this.shown;
    const renewal = ++this.renewals;
    const proposal = await shown?.renew(shown.leftOut).catch(() => undefined);
    if (shown === undefined || this.shown !== shown || renewal !== this.renewals) {
      return;
    }
    if (proposal === undefined) {
      this.list.say("The files have changed, and cannot be converted as they are now.");
      return;
    }
    const pairs = await this.sides.of(proposal.edit, shown.pairs);
    if (this.shown === shown && renewal === this.renewals) {
      Object.assign(shown, { proposal, pairs });
      this.fill(shown);
    }
  }

  /** Close the diff of a decided conversion, even if it opens late. */
  private async tidy(title: string): Promise<void> {
    if (this.shown?.title !== title) {
      await vscode.window.tabGroups.close(tabsOf(title), true);
    }
  }
}
