/** Mutations of inputs. Every character of an input is one byte. */

/** Pseudorandom numbers from a seed (mulberry32). */
export class Chance {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  of<A>(some: ReadonlyArray<A>, otherwise: A): A {
    return some[this.below(some.length)] ?? otherwise
  }
}

const odd = [
  ..."\0\t\n\r\u000b\u001f \"'<>&%+,;:=/\\*~#?{}[]()!-._0129aZ\u007f\u0080\u00a0\u00ff",
  "\u00ed\u00a0\u0080",
  "\u00ef\u00bf\u00be",
  "\u00c3\u00a9",
  "9007199254740993",
  "-1",
  "1e999",
  "4294967296"
]

const slice = (chance: Chance, text: string): readonly [number, number] => {
  const from = chance.below(text.length + 1)
  const length = 1 + chance.below(Math.min(16, text.length - from + 1))
  return [from, Math.min(text.length, from + length)]
}

type Change = (chance: Chance, text: string, tokens: ReadonlyArray<string>, other: string) => string

const replaced = (text: string, from: number, to: number, by: string): string =>
  text.slice(0, from) + by + text.slice(to)

const changes: ReadonlyArray<Change> = [
  (chance, text) => {
    const at = chance.below(text.length)
    const code = text.charCodeAt(at) ^ (1 << chance.below(8))
    return replaced(text, at, at + 1, String.fromCharCode(code & 255))
  },
  (chance, text) => replaced(text, ...slice(chance, text), ""),
  (chance, text) => replaced(text, ...slice(chance, text), chance.of(odd, "")),
  (chance, text) => {
    const at = chance.below(text.length + 1)
    return replaced(text, at, at, chance.of(odd, ""))
  },
  (chance, text, tokens) => {
    const at = chance.below(text.length + 1)
    return replaced(text, at, at, chance.of(tokens, ""))
  },
  (chance, text, tokens) => replaced(text, ...slice(chance, text), chance.of(tokens, "")),
  (chance, text) => {
    const [from, to] = slice(chance, text)
    return replaced(text, from, from, text.slice(from, to).repeat(1 + chance.below(4)))
  },
  (chance, text, _, other) => {
    const at = chance.below(text.length + 1)
    return text.slice(0, at) + other.slice(chance.below(other.length + 1))
  },
  (chance, text) => {
    const [from, to] = slice(chance, text)
    const at = chance.below(text.length + 1)
    return replaced(text, at, at, text.slice(from, to))
  }
]

/** The text with a few changes. */
export const mutated: Change = (chance, text, tokens, other) => {
  let changed = text
  for (let left = 1 + chance.below(4); left > 0; left -= 1) {
    const change = chance.of(changes, (_, same) => same)
    changed = change(chance, changed, tokens, other)
  }
  return changed
}

/** The text with one part repeated up to this length; slow patterns fail on such inputs. */
export const pumped = (text: string, from: number, to: number, chars: number): string => {
  const part = text.slice(from, to) || " "
  const times = Math.max(1, Math.ceil((chars - text.length) / part.length))
  return text.slice(0, from) + part.repeat(times) + text.slice(to)
}
