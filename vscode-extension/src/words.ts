/** A number with its noun, in words. */
export function counted(number: number, what: string, plural = "s"): string {
  return `${number} ${what}${number === 1 ? "" : plural}`;
}

/** A text with a capital first letter. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A reason as a sentence of its own; a name at its beginning stays as it is spelled. */
export function asSentence(reason: string): string {
  const first = /^[a-z]+(?=[ ,])/.test(reason) ? capitalized(reason) : reason;
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
