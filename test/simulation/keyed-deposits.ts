/**
 * Deposits by HTTP with an Idempotency-Key. Each is sent once. Later its key is used for another
 * document, which must not be stored if the first one is, and then for the first document again.
 */
import { mailboxKind } from "../../actors/index.ts"
import { decodeItem, isRemoval } from "../../actors/mailbox/log-item.ts"
import type { Invariants } from "./invariants.ts"
import type { Operations, Turn } from "./operations.ts"
import type { Operation } from "./plan.ts"
import type { World } from "./world.ts"

const REPEATS_MAX = 30
const REPEAT_PAUSE_MS = 4_000
const IN_PROGRESS = 409

/** The text of the first or the other document under a key. */
const textOf = (mark: number, which: "first" | "other"): string => `keyed ${mark} ${which}`

/** Sends a document; returns the status, undefined if the outcome is unknown. */
const send = async (
  { asking, name, trace }: Turn,
  node: number,
  { mark, resource }: Operation,
  which: "first" | "other"
): Promise<number | undefined> => {
  const text = textOf(mark, which)
  const answer = await asking.http(node, {
    method: "POST",
    path: `/mailboxes/${resource.replace("/", "-")}`,
    headers: { "content-type": "application/xml", "idempotency-key": `key-${mark}` },
    body: `<notification><item><url>https://a.test/1</url>` +
      `<description>${text}</description></item></notification>`
  })
  const status = answer._tag === "Answered" ? answer.reply.status : undefined
  trace.note("client", () => `${name} deposits ${text}: ${status ?? answer._tag}`)
  return status
}

const sendUntilAnswered = async (
  turn: Turn,
  operation: Operation,
  which: "first" | "other"
): Promise<void> => {
  const { asking, records } = turn
  for (let at = 0; at < REPEATS_MAX; at++) {
    const node = operation.nodes[at % operation.nodes.length] ?? 0
    const status = await send(turn, node, operation, which)
    if (status !== undefined && status !== IN_PROGRESS) return
    await asking.until(asking.nowMs + REPEAT_PAUSE_MS)
  }
  records.wrong.push(`${textOf(operation.mark, which)} is not answered`)
}

export const keyedDepositVerbs: Operations = {
  "deposit-once": (turn, operation) => send(turn, operation.nodes[0] ?? 0, operation, "first"),
  "deposit-again": async (turn, operation) => {
    await sendUntilAnswered(turn, operation, "other")
    await sendUntilAnswered(turn, operation, "first")
  }
}

/** A key stores one document, once. */
export const keyedDepositsHold = (
  world: World,
  { appended }: Invariants,
  operations: ReadonlyArray<Operation>
): void => {
  const texts = [...appended].flatMap(([key, items]) =>
    key.startsWith(`${mailboxKind}/`)
      ? items.flatMap(({ value }) => isRemoval(value) ? [] : [decodeItem(value).fragment])
      : []
  )
  for (const { mark, verb } of operations) {
    if (verb !== "deposit-once") continue
    const stored = texts.filter((text) => text.includes(`>keyed ${mark} `))
    if (stored.length > 1) {
      world.violate(`the key of deposit ${mark} has stored ${stored.length} notifications`)
    }
  }
}
