/** The options for running a script with Horovod: chosen in one menu, and remembered for each script. */

import * as vscode from "vscode";

import { nameOf } from "./documents";
import { counted } from "./words";

const MOST_PROCESSES = 1024;
const HOST = /^[\w.-]+:[1-9]\d*$/;

/** The options of `horovodrun`: texts, as the user enters them. */
export interface Launch {
  readonly processes: string;
  readonly parameters: string;
  /** Hosts with the number of processes that each may run, such as "a:4,b:4"; "" for this machine. */
  readonly hosts: string;
  /** The number of steps to stop after; "0" for all. */
  readonly steps: string;
}

/** The arguments of `horovodrun`, and those of the script. */
export interface Command {
  readonly options: readonly string[];
  readonly parameters: readonly string[];
}

const USUAL: Launch = { processes: "2", parameters: "", hosts: "", steps: "20" };

/** The purpose of a run: the key for its options, the words of the menu, and the entries. */
export interface Purpose {
  readonly place: string;
  readonly title: (name: string, steps: string) => string;
  readonly run: (processes: number) => string;
  readonly fewest: number;
  readonly most: number;
  /** The option that names hosts, and the one with the number of steps; "" if there is none. */
  readonly hosts: string;
  readonly steps: string;
}

export const RUN_WITH_HOROVOD: Purpose = {
  place: "trainshift.launch",
  title: (name) => `Run ${name} With Horovod`,
  run: (processes) => `Run on ${counted(processes, "Process", "es")}`,
  fewest: 1,
  most: MOST_PROCESSES,
  hosts: "-H",
  steps: "",
};

export const PROVE_WITH_RANKS: Purpose = {
  place: "trainshift.proof",
  title: (name, steps) =>
    `Run ${steps === "0" ? "All Steps" : counted(Number(steps), "Step")} of ${name}, and Compare the Ranks`,
  run: (processes) => `Prove With ${counted(processes, "Rank")}`,
  fewest: 2,
  most: 8,
  hosts: "--hosts",
  steps: "--steps",
};

/** An entry of the menu: its subject, and the check of an answer. */
interface Entry {
  readonly key: keyof Launch;
  readonly icon: string;
  readonly label: string;
  readonly prompt: string;
  readonly shown: (launch: Launch) => string;
  readonly fault: (text: string, purpose: Purpose) => string | undefined;
}

const ENTRIES: readonly Entry[] = [
  {
    key: "processes",
    icon: "server-process",
    label: "Processes",
    prompt: "Number of processes; usually one for each GPU",
    shown: ({ processes }) => processes,
    fault: (text, { fewest, most }) =>
      /^[1-9]\d*$/.test(text) && Number(text) >= fewest && Number(text) <= most
        ? undefined
        : `A whole number from ${fewest} to ${most}`,
  },
  {
    key: "parameters",
    icon: "terminal",
    label: "Arguments",
    prompt: "Arguments of the script, such as --epochs 3",
    shown: ({ parameters }) => parameters || "none",
    fault: (text) => (split(text) === undefined ? "A quotation mark is missing" : undefined),
  },
  {
    key: "hosts",
    icon: "vm",
    label: "Hosts",
    prompt: "Hosts and how many processes each may run, such as server1:4,server2:4; empty for this machine",
    shown: ({ hosts }) => hosts || "this machine",
    fault: (text) =>
      text === "" || text.split(",").every((each) => HOST.test(each.trim()))
        ? undefined
        : "NAME:NUMBER, with commas between hosts",
  },
  {
    key: "steps",
    icon: "debug-step-over",
    label: "Steps",
    prompt: "Steps that each process takes before it is ended; 0 for all",
    shown: ({ steps }) => (steps === "0" ? "all" : steps),
    fault: (text) => (/^(0|[1-9]\d{0,8})$/.test(text) ? undefined : "A whole number; 0 for all steps"),
  },
];

/** Ask how to run a script, starting from the last options; undefined if the user cancels. */
export async function askForLaunch(
  script: vscode.Uri,
  memory: vscode.Memento,
  purpose: Purpose,
): Promise<Command | undefined> {
  const place = `${purpose.place} ${script.toString()}`;
  let launch: Launch = { ...USUAL, ...memory.get<Launch>(place) };
  for (;;) {
    const run = {
      label: `$(play) ${purpose.run(Number(launch.processes))}`,
      entry: undefined,
    };
    const items = ENTRIES.filter(({ key }) => key !== "steps" || purpose.steps !== "").map((entry) => ({
      label: `$(${entry.icon}) ${entry.label}…`,
      description: entry.shown(launch),
      entry,
    }));
    const title = purpose.title(nameOf(script), launch.steps);
    const options = { title, ignoreFocusOut: true, placeHolder: "Run it, or change how" };
    const chosen = await vscode.window.showQuickPick([run, ...items], options);
    if (chosen === undefined) {
      return undefined;
    }
    if (chosen.entry === undefined) {
      const fault = shortage(launch);
      if (fault === undefined) {
        await memory.update(place, launch);
        return commandOf(launch, purpose);
      }
      void vscode.window.showWarningMessage(`Trainshift: ${fault}`);
      continue;
    }
    const { key, label, prompt, fault } = chosen.entry;
    const given = await vscode.window.showInputBox({
      title: `${title}: ${label}`,
      prompt,
      value: launch[key],
      ignoreFocusOut: true,
      validateInput: (text) => fault(text.trim(), purpose),
    });
    launch = { ...launch, [key]: given?.trim() ?? launch[key] };
  }
}

function commandOf({ processes, parameters, hosts, steps }: Launch, purpose: Purpose): Command {
  const named = hosts === "" ? [] : [purpose.hosts, hosts.replaceAll(/\s/g, "")];
  const ended = purpose.steps === "" || steps === USUAL.steps ? [] : [purpose.steps, steps];
  return { options: ["-np", processes, ...named, ...ended], parameters: split(parameters) ?? [] };
}

function shortage({ processes, hosts }: Launch): string | undefined {
  const places = hosts.split(",").map((each) => Number(each.split(":")[1] ?? 0));
  const sum = places.reduce((one, other) => one + other, 0);
  return hosts !== "" && sum < Number(processes)
    ? `the hosts run ${counted(sum, "process", "es")} at most; ${processes} are wanted.`
    : undefined;
}

/** Split a text into words like a shell; undefined if a quotation mark is missing. */
export function split(text: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (sign === quote) {
      quote = "";
    } else if (quote === "" && /["']/.test(sign)) {
      quote = sign;
      word ??= "";
    } else if (sign === "\\" && quote !== "'") {
      at += 1;
      word = (word ?? "") + text.charAt(at);
    } else if (quote === "" && /\s/.test(sign)) {
      words.push(...(word === undefined ? [] : [word]));
      word = undefined;
    } else {
      word = (word ?? "") + sign;
    }
  }
  return quote === "" ? [...words, ...(word === undefined ? [] : [word])] : undefined;
}
