/**
 * Operations of clients on content, by HTTP, and what must hold of it at the end. Every second
 * content is published with an Idempotency-Key.
 */
import { Effect } from "effect"
import type { ContentState } from "../../actors/content/protocol.ts"
import { contentKind } from "../../actors/index.ts"
import { collectBlobs } from "../../http/blob-garbage.ts"
import { readKeyedRequest, type Service } from "../../http/pipeline/index.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { address, placingPart, shardOf } from "../../runtime/index.ts"
import type { StoredInput, StoredOutput } from "../histories/models/stored.ts"
import { baseUrl } from "./nodes.ts"
import type { KnownContent, Operations, Turn } from "./operations.ts"
import { contentsCount, type Operation } from "./plan.ts"
import type { Answer } from "./requests.ts"
import { shardsInUse } from "./shards.ts"
import { fieldOf, serviceKey, type WebAnswer, type WebRequest } from "./web.ts"
import { stateOf, type World } from "./world.ts"

const ID_CHARS = 22
const SECRET_CHARS = 43

/** The first of `text-0`, `text-1`, … that suits. */
export const firstOf = (text: string, suits: (one: string) => boolean): string => {
  for (let n = 0;; n++) if (suits(`${text}-${n}`)) return `${text}-${n}`
}

const isInUse = (id: string): boolean => shardsInUse.has(shardOf(address(contentKind, id)))

/** The request of a content, and the id that it gets. */
interface Publication {
  readonly id: string
  readonly isKeyed: boolean
  readonly request: Omit<WebRequest, "body">
}

const post = { method: "POST", path: "/content" }

const anonymous = { scope: undefined, credentials: "", hasAccount: false }

/** A key whose actor and content are in shards of the nodes. */
const keyedPublication = (at: number): Publication => {
  let id = ""
  const key = firstOf(`a-key-that-nobody-guesses-${at}`, (text) => {
    const headers = new RequestHeaders(["idempotency-key", text])
    // Nothing else of the service determines the ids of a key.
    const service = { serviceKey, startId: "" } as Service
    const keyed = Effect.runSync(
      readKeyedRequest(
        service,
        { ...post, query: "", headers, remoteAddress: "" },
        anonymous,
        undefined
      )
    )
    if (!shardsInUse.has(shardOf(keyed.address))) return false
    id = keyed.idsFor("stream").id("content")
    return isInUse(id)
  })
  const headers = { "content-type": "text/plain", "idempotency-key": key }
  return { id, isKeyed: true, request: { ...post, headers } }
}

const plainPublication = (at: number): Publication => {
  const id = firstOf(`plain-${at}`, (text) => isInUse(text.padEnd(ID_CHARS, "-")))
    .padEnd(ID_CHARS, "-")
  const ids = { isRandom: true, id: () => id, secret: () => id.padEnd(SECRET_CHARS, "s") }
  return {
    id,
    isKeyed: false,
    request: { ...post, headers: { "content-type": "text/plain" }, ids }
  }
}

// Made before any run: drawing ids takes random bytes.
const publications = Array.from(
  { length: contentsCount },
  (_, at) => at % 2 === 0 ? keyedPublication(at) : plainPublication(at)
)

const publicationOf = (resource: string): Publication => {
  const one = publications[Number(resource.slice(resource.indexOf("/") + 1))]
  if (one === undefined) throw new RangeError(`there is no ${resource}`)
  return one
}

const bytesOf = (mark: number): string => `the bytes of ${mark}`

const pathOf = (uri: string | undefined): string => (uri ?? "").replace(baseUrl, "")

const pathsIn = (answer: WebAnswer): KnownContent["paths"] => ({
  content: pathOf(fieldOf(answer, "Location")),
  edit: pathOf(/<([^>]*)>; rel="?edit/.exec(fieldOf(answer, "Link") ?? "")?.[1])
})

/** Sends one request, and traces it. */
const send = async (
  { asking, name, trace }: Turn,
  node: number,
  request: WebRequest
): Promise<Answer<WebAnswer>> => {
  const answer = await asking.http(node, request)
  trace.note("client", () => {
    const result = answer._tag === "Answered"
      ? `${answer.reply.status} ${answer.reply.text}`
      : `${answer._tag} ${answer.why}`
    return `${name} ${request.method} ${request.path}: ${result}`
  })
  return answer
}

/** The answer to a publication, which is 202, or 409 while another attempt runs. */
const published = (
  { known, records }: Turn,
  resource: string,
  answer: Answer<WebAnswer>
): boolean => {
  if (answer._tag !== "Answered") return false
  const { reply } = answer
  if (reply.status !== 202) {
    if (reply.status !== 409) records.wrong.push(`${resource} is published with ${reply.status}`)
    return false
  }
  const paths = pathsIn(reply)
  const content = known.contents.get(resource)
  if (content === undefined) throw new Error(`${resource} was never published`)
  const before = content.paths
  if (before !== undefined && JSON.stringify(paths) !== JSON.stringify(before)) {
    records.wrong.push(`${resource} is ${JSON.stringify(paths)}, not ${JSON.stringify(before)}`)
  }
  if (before === undefined) {
    known.contents.set(resource, { ...content, paths })
    records.content.push({
      client: content.client,
      resource,
      input: { kind: "publish", value: content.value },
      output: { _tag: "Done" },
      start: content.start,
      end: records.moment(),
      outcome: "ok"
    })
  }
  return true
}

const publish: Operations[string] = async (turn, { mark, nodes, resource }) => {
  const { isKeyed, request } = publicationOf(resource)
  const value = bytesOf(mark)
  const start = turn.records.moment()
  turn.known.contents.set(resource, { start, client: turn.name, value, paths: undefined })
  for (const node of isKeyed ? nodes : nodes.slice(0, 1)) {
    const answer = await send(turn, node, { ...request, body: value })
    if (published(turn, resource, answer)) return
  }
}

const REPEATS_MAX = 30
const REPEAT_PAUSE_MS = 4_000

/** Repeats a publication with its key until it is answered. */
const repeat: Operations[string] = async (turn, { nodes, resource }) => {
  const { isKeyed, request } = publicationOf(resource)
  const content = turn.known.contents.get(resource)
  if (!isKeyed || content === undefined) return
  for (let at = 0; at < REPEATS_MAX; at++) {
    const answer = await send(turn, nodes[at % nodes.length] ?? 0, {
      ...request,
      body: content.value
    })
    if (published(turn, resource, answer)) return
    await turn.asking.until(turn.asking.nowMs + REPEAT_PAUSE_MS)
  }
  turn.records.wrong.push(`${resource} cannot be published again`)
}

/** Sends a request about a content that was published, to one node after the other. */
const askAbout = async (
  turn: Turn,
  { nodes, resource }: Operation,
  request: WebRequest,
  input: StoredInput
): Promise<void> => {
  for (const node of nodes) {
    const start = turn.records.moment()
    const answer = await send(turn, node, request)
    const what = { client: turn.name, resource, input }
    turn.records.note<StoredInput, StoredOutput, WebAnswer>(
      turn.records.content,
      what,
      start,
      answer,
      ({ status, text }) => {
        if (status === 200) return { _tag: "Found", value: text }
        if (status === 204) return { _tag: "Done" }
        if (status !== 404 && status !== 410) {
          turn.records.wrong.push(`${resource} answers ${request.method} with ${status}`)
        }
        return { _tag: "Gone" }
      }
    )
    if (answer._tag === "Answered") return
  }
}

/** Fraction of the removals that happen. */
const REMOVED = 0.3

export const contentVerbs: Operations = {
  publish,
  repeat,
  read: async (turn, operation) => {
    const path = turn.known.contents.get(operation.resource)?.paths?.content
    if (path === undefined) return
    await askAbout(turn, operation, { method: "GET", path }, { kind: "read" })
  },
  overwrite: async (turn, operation) => {
    const path = turn.known.contents.get(operation.resource)?.paths?.edit
    if (path === undefined) return
    const value = bytesOf(operation.mark)
    const headers = { "content-type": "text/plain" }
    const request = { method: "PUT", path, headers, body: value }
    await askAbout(turn, operation, request, { kind: "overwrite", value })
  },
  remove: async (turn, operation) => {
    const path = turn.known.contents.get(operation.resource)?.paths?.edit
    if (path === undefined || operation.choice > REMOVED) return
    await askAbout(turn, operation, { method: "DELETE", path }, { kind: "remove" })
  }
}

const contentStateOf = (world: World, id: string): ContentState =>
  stateOf<ContentState>(world, address(contentKind, id)) ?? { _tag: "Absent" }

/** Stored blobs that no content names. */
const orphansIn = (world: World): ReadonlyArray<string> =>
  Effect.runSync(world.blobs.inner.scan(undefined, Number.MAX_SAFE_INTEGER)).filter((blobId) => {
    const state = contentStateOf(world, placingPart(blobId))
    return !(state._tag !== "Absent" && state.stale.includes(blobId) ||
      state._tag === "Published" && state.body.blobId === blobId)
  })

/** Whether there are orphans now, or may be later. */
export const mayHaveOrphans = (world: World): boolean =>
  world.blobs.calls.isExpecting || orphansIn(world).length > 0

/** Collects the orphans on two nodes at once, when all blobs are settled. */
export const collectOrphans = async (world: World): Promise<void> => {
  const collect = ({ computer, web }: World["nodes"][number]): Promise<void> =>
    new Promise((resolve) => {
      const ended = (what: string | undefined): void => {
        if (what !== undefined) world.violate(`orphans are not collected: ${what}`)
        resolve()
      }
      world.time.on(computer, 0, () => {
        if (web === undefined) return ended(`${computer.name} is not up`)
        Effect.runFork(collectBlobs(web.service)).addObserver((exit) => {
          if (exit._tag === "Failure") ended(String(exit.cause))
          else ended(exit.value.unanswered === 0 ? undefined : "an owner does not answer")
        })
      })
    })
  await Promise.all(world.nodes.slice(0, 2).map(collect))
}

/** Each named blob is there with its bytes; each blob is named; each content was asked for. */
export const contentsHold = (world: World): void => {
  const { blobs, store } = world
  const ids = Effect.runSync(store.inner.scan(contentKind, undefined, Number.MAX_SAFE_INTEGER))
  for (const id of ids) {
    if (!publications.some((one) => one.id === id)) world.violate(`nobody asked for content ${id}`)
    const state = contentStateOf(world, id)
    if (state._tag !== "Published") continue
    const { blobId, digest } = state.body
    const info = Effect.runSync(blobs.inner.info(blobId))
    if (info === undefined) world.violate(`the blob ${blobId} of a content is missing`)
    else if (info.digest !== digest) world.violate(`the blob ${blobId} has other bytes`)
  }
  for (const blobId of orphansIn(world)) world.violate(`the orphan ${blobId} stays`)
}
