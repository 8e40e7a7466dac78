/**
 * Formats of stored states and of messages: whole numbers from 1. A program reads all formats up to
 * its own, and writes the newest one that every node of its cluster reads.
 */

/** The first format, which every program reads. */
export const firstFormat = 1

/** A state as it is stored: `<format> <encoded state>`. */
export interface StoredState {
  readonly format: number
  readonly text: string
}

/** The text of a state in the store, from which {@link decodeStoredState} reads it. */
export const encodeStoredState = ({ format, text }: StoredState): string => `${format} ${text}`

/** Throws when the stored text does not begin with a format. */
export const decodeStoredState = (stored: string): StoredState => {
  const space = stored.indexOf(" ")
  const format = Number(stored.slice(0, space))
  if (space < 1 || !Number.isSafeInteger(format) || format < firstFormat) {
    throw new Error("a stored state does not begin with its format")
  }
  return { format, text: stored.slice(space + 1) }
}
