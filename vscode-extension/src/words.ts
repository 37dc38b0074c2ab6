/** How many of what, in words. */
export function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
