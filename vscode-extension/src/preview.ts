/** What a conversion would do, before anything is changed: a diff, a list of its changes, and a decision. */

import * as vscode from "vscode";

import { ChangeList } from "./changeList";
import { Conversion, Note, Rule } from "./protocol";
import { isDiff, Pair, revealBefore, showDiff, Sides, tabsOf } from "./sides";
import { moved } from "./summary";

const CONTEXT = "trainshift.isPreviewing";
/** What the titles of diffs end with. */
const MADE_DISTRIBUTED = " ↔ made distributed";
export const GRAPH_CODE = " ↔ graph code, for reading";
export const MADE_STATIC = " ↔ made static";

/** What a conversion would do, for the documents as they are. */
export interface Proposal {
  readonly edit: vscode.WorkspaceEdit;
  readonly conversion: Conversion;
}

/** Works out a proposal anew, without some changes that are optional; undefined where there is none. */
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

/** Shows one conversion at a time, until the person has decided. */
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
    // Of a diff of an earlier session the right side is lost.
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
   * What the person wants of a conversion of what is called `name`, if anything; closing the diff says no.
   *
   * The title of the diff is the name with an `ending`.
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

  /** The person has decided. */
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
      // VS Code gives no answer where another editor takes the place of the diff before it is there.
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

  /** List what a conversion would do, and give its sides. */
  private fill(shown: Shown): void {
    const { rules, leftOut, proposal, pairs } = shown;
    this.shown = shown;
    this.sides.publish(pairs);
    this.list.fill({ conversion: proposal.conversion, rules, leftOut, turn: this.turn });
  }

  /** The person has ticked changes, or left them out. */
  private choose(leftOut: readonly Note[]): void {
    if (this.shown !== undefined) {
      this.shown.leftOut = leftOut;
      void this.refresh();
    }
  }

  /** A document has changed while its conversion is shown: what was shown is out of date. */
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

  /** Show what the conversion would do now. */
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

  /** Close the diff of a conversion that is decided, also one that comes late. */
  private async tidy(title: string): Promise<void> {
    if (this.shown?.title !== title) {
      await vscode.window.tabGroups.close(tabsOf(title), true);
    }
  }
}
