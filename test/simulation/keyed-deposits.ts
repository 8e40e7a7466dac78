/**
 * Deposits by HTTP with an Idempotency-Key. Each is sent once. Later its key is used for another
 * document, which must not be stored if the first one is, and then for the first document again.
 */
import { decodeItem, isRemoval } from "../../actors/mailbox/log-item.ts"
import type { MailboxState } from "../../actors/mailbox/protocol.ts"
import { type Address, keyOf } from "../../runtime/actor/address.ts"
import type { Invariants } from "./invariants.ts"
import { mailboxAt } from "./mailboxes.ts"
import type { Operations, Turn } from "./operations.ts"
import type { Operation } from "./plan.ts"
import type { Records } from "./records.ts"
import { stateOf, type World } from "./world.ts"

const REPEATS_MAX = 30
const REPEAT_PAUSE_MS = 4_000
const ACCEPTED = 202
const NOT_FOUND = 404
const IN_PROGRESS = 409
const GONE = 410
const OTHER_REQUEST = 422
const UNAVAILABLE = 503

/** Which of the two documents under a key. */
type KeyedText = "first" | "other"

const textOf = (mark: number, which: KeyedText): string => `keyed ${mark} ${which}`

/** Sends a document; returns the status, undefined if the outcome is unknown. */
const send = async (
  { asking, name, trace }: Turn,
  node: number,
  { mark, resource }: Operation,
  which: KeyedText
): Promise<number | undefined> => {
  const text = textOf(mark, which)
  const answer = await asking.http(node, {
    method: "POST",
    path: `/mailboxes/${resource.replace("/", "-")}`,
    headers: {
      "content-type": "application/xml",
      "idempotency-key": `a-key-that-nobody-guesses-${mark}`
    },
    body: `<notification><item><url>https://a.test/1</url>` +
      `<description>${text}</description></item></notification>`
  })
  const status = answer._tag === "Answered" ? answer.reply.status : undefined
  trace.note("client", () => `${name} deposits ${text}: ${status ?? answer._tag}`)
  return status
}

/** Sends a document until its answer is final, and records that. */
const sendUntilAnswered = async (
  turn: Turn,
  operation: Operation,
  which: KeyedText
): Promise<void> => {
  const { asking, records } = turn
  const { mark, nodes } = operation
  for (let at = 0; at < REPEATS_MAX; at++) {
    const status = await send(turn, nodes[at % nodes.length] ?? 0, operation, which)
    if (status !== undefined && status !== IN_PROGRESS && status !== UNAVAILABLE) {
      records.keyedDeposits.set(textOf(mark, which), status)
      return
    }
    await asking.until(asking.nowMs + REPEAT_PAUSE_MS)
  }
  records.wrong.push(`${textOf(mark, which)} is not answered`)
}

export const keyedDepositVerbs: Operations = {
  "deposit-once": (turn, operation) => send(turn, operation.nodes[0] ?? 0, operation, "first"),
  "deposit-again": async (turn, operation) => {
    await sendUntilAnswered(turn, operation, "other")
    await sendUntilAnswered(turn, operation, "first")
  }
}

/** A notification that a mailbox has stored. */
interface StoredText {
  readonly fragment: string
  readonly isRemoved: boolean
}

const storedTexts = ({ appended, removed }: Invariants, mailbox: Address): Array<StoredText> =>
  (appended.get(keyOf(mailbox)) ?? []).flatMap(({ n, value }) => {
    if (isRemoval(value)) return []
    const isRemoved = removed.get(keyOf(mailbox))?.has(n) === true
    return [{ fragment: decodeItem(value).fragment, isRemoved }]
  })

/** Whether the protocol allows this last answer to a keyed deposit. */
const isAllowed = (
  status: number,
  own: StoredText | undefined,
  otherStatus: number | undefined,
  isDestroyed: boolean
): boolean => {
  switch (status) {
    case ACCEPTED:
      return own !== undefined
    case NOT_FOUND:
      // A mailbox whose creation was stored late is not found.
      return own === undefined
    case GONE:
      return isDestroyed || own?.isRemoved === true
    case OTHER_REQUEST:
      // The key belongs to one of the two.
      return own === undefined && otherStatus !== OTHER_REQUEST
    default:
      return false
  }
}

/** A key stores one document, once, and its last answers say what has become of it. */
export const keyedDepositsHold = (
  world: World,
  invariants: Invariants,
  { keyedDeposits }: Records,
  operations: ReadonlyArray<Operation>
): void => {
  for (const { mark, resource, verb } of operations) {
    if (verb !== "deposit-once") continue
    const mailbox = mailboxAt(resource)
    const texts = storedTexts(invariants, mailbox)
    const stored = texts.filter(({ fragment }) => fragment.includes(`>keyed ${mark} `))
    if (stored.length > 1) {
      world.violate(`the key of deposit ${mark} has stored ${stored.length} notifications`)
    }
    const isDestroyed = stateOf<MailboxState>(world, mailbox)?._tag === "Destroyed"
    for (const [which, other] of [["first", "other"], ["other", "first"]] as const) {
      const text = textOf(mark, which)
      const status = keyedDeposits.get(text)
      const own = stored.find(({ fragment }) => fragment.includes(`>${text}<`))
      const isRight = status === undefined ||
        isAllowed(status, own, keyedDeposits.get(textOf(mark, other)), isDestroyed)
      if (!isRight) {
        const fate = own === undefined ? "not stored" : own.isRemoved ? "removed" : "stored"
        world.violate(`${text} is answered with ${status}, and is ${fate}`)
      }
    }
  }
}
