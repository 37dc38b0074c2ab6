import { setTimeout as sleep } from "node:timers/promises";

/** The timeout of one wait; the machine may be busy with other tests. */
export const TIME_LIMIT = 120_000;
const PAUSE = 100;

/** Wait until `get` returns a truthy value, and return that. */
export async function until<T>(
  what: string,
  get: () => T | Promise<T>,
  limit = TIME_LIMIT,
): Promise<NonNullable<T>> {
  const end = Date.now() + limit;
  for (;;) {
    const found = await get();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${String(limit / 1000)} s in vain until ${what}`);
    await sleep(PAUSE);
  }
}
