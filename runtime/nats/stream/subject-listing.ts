/** The names of a stream's subjects, by the word of who leads it. */
import { keysMax, listingOverlap, readMs } from "../../limits.ts"
import { persist } from "../connection/index.ts"
import { api, type Asking, type InfoAnswer } from "./reader.ts"

/** Names in the order of the servers, which sort them as bytes; subjects are ASCII. */
const inOrder = (subjects: Readonly<Record<string, number>> | undefined): ReadonlyArray<string> =>
  Object.keys(subjects ?? {}).sort()

/**
 * The subjects that match, page by page, and a sequence that covers them: everything that was
 * acknowledged before the call is among them. The leader lists, once it has got so far.
 *
 * A page is asked for by how many names stand before it, which are fewer when some were removed
 * meanwhile: so each begins before the end of the last one, and what was told is left out.
 */
export async function* subjectsOf(
  asking: Asking,
  stream: string,
  filter: string
): AsyncGenerator<{ readonly subjects: ReadonlyArray<string>; readonly lastSeq: number }> {
  const atLeast = (await asking.confirmed(stream))?.seq ?? 0
  const page = async (offset: number) => {
    const question = { subjects_filter: filter, offset }
    let withinMs = readMs
    const { state, total = 0 } = await persist(async () => {
      // Among millions of names the leader needs longer than for anything else.
      withinMs *= 2
      const answer = await api<InfoAnswer>(
        asking,
        `STREAM.INFO.${stream}`,
        question,
        withinMs / 2
      )
      if (answer.state.last_seq >= atLeast) return answer
      throw new Error(`the leader of ${stream} has not got to ${atLeast}`)
    })
    return { names: inOrder(state.subjects), lastSeq: state.last_seq, total }
  }
  let last: string | undefined
  for (let [offset, back] = [0, listingOverlap];;) {
    const { lastSeq, names, total } = await page(offset)
    const [first] = names
    // Names may stand between the last one that was told and this page.
    if (last !== undefined && offset > 0 && (first === undefined || first > last)) {
      offset = Math.max(0, offset - back)
      back *= 2
      continue
    }
    back = listingOverlap
    const told = last
    const subjects = told === undefined ? names : names.filter((name) => name > told)
    if (subjects.length > 0) yield { subjects, lastSeq }
    last = subjects.at(-1) ?? last
    if (names.length === 0 || offset + names.length >= total) return
    offset = Math.max(offset + 1, offset + names.length - listingOverlap)
  }
}

/** Pieces of at most KEYS_MAX. */
export const pieces = (subjects: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from(
    { length: Math.ceil(subjects.length / keysMax) },
    (_, at) => subjects.slice(at * keysMax, (at + 1) * keysMax)
  )
