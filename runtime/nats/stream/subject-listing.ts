/** The names of a stream's subjects, by the word of who leads it. */
import { keysPerReadMax, listingOverlapNames, readTimeoutMs } from "../../limits.ts"
import { retryUntilDeadline } from "../connection/index.ts"
import { callApi, type InfoAnswer, type StreamAccess } from "./reader.ts"

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
export async function* listSubjects(
  asking: StreamAccess,
  stream: string,
  filter: string
): AsyncGenerator<{ readonly subjects: ReadonlyArray<string>; readonly lastSeq: number }> {
  const atLeast = (await asking.readBarrier(stream))?.seq ?? 0
  const page = async (offset: number) => {
    const question = { subjects_filter: filter, offset }
    let withinMs = readTimeoutMs
    const { state, total = 0 } = await retryUntilDeadline(async () => {
      // Among millions of names the leader needs longer than for anything else.
      withinMs *= 2
      const answer = await callApi<InfoAnswer>(
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
  for (let [offset, back] = [0, listingOverlapNames];;) {
    const { lastSeq, names, total } = await page(offset)
    const [first] = names
    // Names may stand between the last one that was told and this page.
    if (last !== undefined && offset > 0 && (first === undefined || first > last)) {
      offset = Math.max(0, offset - back)
      back *= 2
      continue
    }
    back = listingOverlapNames
    const told = last
    const subjects = told === undefined ? names : names.filter((name) => name > told)
    if (subjects.length > 0) yield { subjects, lastSeq }
    last = subjects.at(-1) ?? last
    if (names.length === 0 || offset + names.length >= total) return
    offset = Math.max(offset + 1, offset + names.length - listingOverlapNames)
  }
}

/** Pieces of at most KEYS_MAX. */
export const pagesOf = (subjects: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from(
    { length: Math.ceil(subjects.length / keysPerReadMax) },
    (_, at) => subjects.slice(at * keysPerReadMax, (at + 1) * keysPerReadMax)
  )
