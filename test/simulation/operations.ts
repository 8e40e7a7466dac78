/** Shared parts of the operations on all kinds of resources. */
import type { HistoryOperation as Recorded, Trace } from "../../runtime/testing/index.ts"
import { type Address, isRefusal } from "../../runtime/index.ts"
import type { SessionStep } from "../histories/models/session.ts"
import type { Answer, AnyMessage, ClientRequest } from "./requests.ts"
import type { Operation } from "./plan.ts"
import type { Records } from "./records.ts"

/** A content that a client has tried to publish. */
export interface KnownContent {
  /** When it began, in the moments of the records. */
  readonly start: number
  readonly client: string
  readonly value: string
  /** The paths of the content and of its edit URI; undefined without an answer. */
  readonly paths: { readonly content: string; readonly edit: string } | undefined
}

/** An item that a client has seen in a mailbox. */
interface KnownEntry {
  readonly n: number
  readonly idRandom: string
  /** A relay has deposited it. */
  readonly isRelayed: boolean
}

/** The knowledge of all clients about the resources. */
export interface Known {
  /** Ids of sent notifications. */
  readonly notifications: Array<string>
  /** Ids of created registrations, with their callbacks. */
  readonly registrations: Map<string, { readonly callback: string; readonly cursor: number }>
  /** Registrations that the mailbox has confirmed, and when, true time in ms. */
  readonly listed: Map<string, number>
  /** Mailboxes whose removal a client has begun. */
  readonly destroyed: Set<string>
  /** Observed items by mailbox. */
  readonly entries: Map<string, ReadonlyArray<KnownEntry>>
  /** Last observed versions of resources. */
  readonly versions: Map<string, number>
  /** The step that each session waits for, by its last reply. */
  readonly steps: Map<string, SessionStep>
  /** Published contents by resource. */
  readonly contents: Map<string, KnownContent>
}

export const nothingKnown = (): Known => ({
  notifications: [],
  registrations: new Map(),
  listed: new Map(),
  destroyed: new Set(),
  entries: new Map(),
  versions: new Map(),
  steps: new Map(),
  contents: new Map()
})

/** A client during one operation. */
export interface Turn {
  readonly name: string
  readonly asking: ClientRequest
  readonly records: Records
  readonly known: Known
  readonly trace: Trace
}

export type Operations = Readonly<
  Record<string, (turn: Turn, operation: Operation) => Promise<unknown>>
>

export const owner = "alice"
export const caller = { account: owner, admin: false }

/** 22 characters that are unique to this operation. */
export const paddedName = (what: string, mark: number): string => `${what}${mark}`.padEnd(22, "-")

export const reasonOf = (reply: unknown): string | undefined =>
  isRefusal(reply) ? reply.reason : undefined

interface Reported<Input, Output> {
  readonly all: Array<Recorded<Input, Output>>
  readonly resource: string
  readonly input: Input
  readonly outputOf: (reply: unknown) => Output
}

const shownOf = (answer: Answer<unknown>): string =>
  answer._tag === "Answered" ? JSON.stringify(answer.reply) : `${answer._tag} ${answer.why}`

/** Sends one request, and records it. */
export const askOnce = async <Input, Output>(
  { asking, name, records, trace }: Turn,
  node: number,
  to: Address,
  message: AnyMessage,
  { all, input, outputOf, resource }: Reported<Input, Output>
): Promise<Answer<unknown>> => {
  const start = records.moment()
  const answer = await asking.ask(node, to, message)
  trace.note("client", () => `${name} ${message._tag} ${to.kind}/${to.id}: ${shownOf(answer)}`)
  records.note(all, { client: name, resource, input }, start, answer, outputOf)
  return answer
}

/** Repeats a request at one node after the other until an answer; records each request. */
export const askUntilAnswered = async <Input, Output>(
  turn: Turn,
  { nodes }: Operation,
  to: Address,
  message: AnyMessage,
  reported: Reported<Input, Output>
): Promise<Answer<unknown> | undefined> => {
  let answer: Answer<unknown> | undefined
  for (const node of nodes) {
    answer = await askOnce(turn, node, to, message, reported)
    if (answer._tag === "Answered") break
  }
  return answer
}

/**
 * The same for the creation of a resource: the request id makes all requests one operation, which
 * ends with the last request.
 */
export const askToCreate = async <Input, Output>(
  { asking, name, records, trace }: Turn,
  { nodes }: Operation,
  to: Address,
  message: AnyMessage,
  { all, input, outputOf, resource }: Reported<Input, Output>
): Promise<Answer<unknown>> => {
  const start = records.moment()
  let last: Answer<unknown> = { _tag: "Failed", why: "nobody was asked" }
  let isRepeated = false
  for (const node of nodes) {
    const answer = await asking.ask(node, to, message)
    trace.note("client", () => `${name} ${message._tag} ${to.kind}/${to.id}: ${shownOf(answer)}`)
    if (last._tag === "Failed" || answer._tag === "Answered") last = answer
    if (answer._tag === "Answered") break
    isRepeated ||= answer._tag === "Unknown"
  }
  const what = { client: name, resource, input }
  // The reply to a repetition describes a later state.
  if (last._tag === "Answered" && isRepeated) {
    all.push({ ...what, start, end: records.moment(), outcome: "ok" })
  } else records.note(all, what, start, last, outputOf)
  return last
}
