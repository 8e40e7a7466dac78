/**
 * The search in the documentation: a scan of all texts, some 800 kB that are known at the build. It
 * needs no index, whose size would be that of the texts. The number of terms bounds its time, and
 * it lets other requests go on after a number of compared characters.
 */
import { Effect } from "effect"
import { docsMatchesMax, docsTermsMax, docsTurnCharsMax } from "../limits.ts"
import { pause } from "../query-engine/index.ts"

/** A text that the search finds, and where it is. */
export interface SearchableText {
  /** Path and anchor. */
  readonly href: string
  /** The title of the page that has it. */
  readonly page: string
  /** The heading above the text. */
  readonly title: string
  readonly text: string
  /** Heading and text in lower case. */
  readonly lower: { readonly page: string; readonly title: string; readonly text: string }
}

/** A text with what the search compares. */
export const searchable = (text: Omit<SearchableText, "lower">): SearchableText => ({
  ...text,
  lower: {
    page: text.page.toLowerCase(),
    title: text.title.toLowerCase(),
    text: text.text.toLowerCase()
  }
})

/** A text that has all terms, and the piece of it that has the first of them. */
export interface DocsMatch {
  readonly text: SearchableText
  /** The text around the term, in three pieces; the term is the middle one. */
  readonly excerpt: readonly [before: string, term: string, after: string]
}

/** Characters shown before and after a term. */
const excerptCharsBefore = 60
const excerptCharsAfter = 120

/** The words of a query, in lower case, each once; more than the maximum are ignored. */
const termsOf = (query: string): ReadonlyArray<string> => {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "")
  return [...new Set(words)].slice(0, docsTermsMax)
}

/** Points of a term in a text; 0 if it is not there. */
const pointsOf = ({ lower }: SearchableText, term: string): number =>
  (lower.title.includes(term) ? 8 : 0) + (lower.page.includes(term) ? 3 : 0) +
  (lower.text.includes(term) ? 1 : 0)

const isWord = (char: string): boolean => /[\p{L}\p{N}]/u.test(char)

/** A place that does not divide a word, at or after this one. */
const wordStart = (text: string, at: number): number => {
  let start = at
  while (start > 0 && start < text.length && isWord(text.charAt(start - 1))) start++
  return start
}

const excerptOf = ({ lower, text }: SearchableText, term: string): DocsMatch["excerpt"] => {
  const found = lower.text.indexOf(term)
  const flat = (from: number, to: number) => text.slice(from, to).replace(/\s+/g, " ")
  if (found === -1) return ["", "", flat(0, excerptCharsBefore + excerptCharsAfter)]
  const from = found <= excerptCharsBefore ? 0 : wordStart(text, found - excerptCharsBefore)
  const end = found + term.length
  const before = flat(Math.min(from, found), found)
  return [before, text.slice(found, end), flat(end, end + excerptCharsAfter)]
}

/** Points of all terms in a text; 0 if one of them is not there. */
const pointsOfAll = (text: SearchableText, terms: ReadonlyArray<string>): number => {
  let sum = 0
  for (const term of terms) {
    const points = pointsOf(text, term)
    if (points === 0) return 0
    sum += points
  }
  return sum
}

/** The texts that have all terms of a query: the best first, then in the order of the pages. */
export const searchTexts = Effect.fnUntraced(function*(
  texts: ReadonlyArray<SearchableText>,
  query: string
): Effect.fn.Return<ReadonlyArray<DocsMatch>> {
  const terms = termsOf(query)
  const [first] = terms
  if (first === undefined) return []
  const found: Array<{ readonly text: SearchableText; readonly points: number }> = []
  let turnChars = 0
  for (const text of texts) {
    const chars = terms.length * text.text.length
    if (turnChars + chars > docsTurnCharsMax && turnChars > 0) {
      turnChars = 0
      yield* pause
    }
    turnChars += chars
    const points = pointsOfAll(text, terms)
    if (points > 0) found.push({ text, points })
  }
  return found.toSorted((one, other) => other.points - one.points).slice(0, docsMatchesMax)
    .map(({ text }) => ({ text, excerpt: excerptOf(text, first) }))
})
