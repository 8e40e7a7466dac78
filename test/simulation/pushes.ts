/** Compares the pushes that callbacks received with the logs of their mailboxes. */
import { isRemoval, parseNotificationId } from "../../actors/mailbox/log-item.ts"
import type { Delivery } from "./external-services.ts"
import type { Appended } from "./invariants.ts"

export interface Pushed {
  /** Where the registration began. */
  readonly cursor: number
  /** When its callback first echoed a challenge; undefined if it never did. */
  readonly echoedMs: number | undefined
  /** In the order of arrival. */
  readonly deliveries: ReadonlyArray<Delivery>
  /** All items that the mailbox's log ever had. */
  readonly appended: ReadonlyArray<Appended>
  /** When items were removed. */
  readonly removed: ReadonlyMap<number, number>
  /** When the mailbox confirmed the registration. */
  readonly listedMs: number | undefined
}

/** The numbers of the notifications in a push. */
const numbersIn = (body: string): ReadonlyArray<number> =>
  [...body.matchAll(/<notification href="[^"]*\/notifications\/([^"]+)"/g)]
    .flatMap(([, id = ""]) => parseNotificationId(id)?.n ?? [])

/** The numbers of the removed notifications in a push. */
const removedIn = (body: string): ReadonlyArray<number> =>
  [...body.matchAll(/<removed href="[^"]*\/notifications\/([^"]+)"/g)]
    .flatMap(([, id = ""]) => parseNotificationId(id)?.n ?? [])

/** Removals that no acknowledged push contains. */
const untold = (
  { appended, deliveries, listedMs = Infinity, removed }: Pushed
): ReadonlyArray<string> => {
  const reported = new Set(
    deliveries.filter(({ code }) => code >= 200 && code < 300).flatMap(({ body }) =>
      removedIn(body)
    )
  )
  return appended.flatMap(({ n, value }) => {
    const isDue = !isRemoval(value) && (removed.get(n) ?? 0) > listedMs
    return isDue && !reported.has(n) ? [`the removal of ${n} was never pushed`] : []
  })
}

/** The violations in a registration's pushes. `isEnd`: all pushes must have arrived by now. */
export const faultsOf = (pushed: Pushed, isEnd: boolean): ReadonlyArray<string> => {
  const { appended, cursor, deliveries, echoedMs = Infinity, removed } = pushed
  const faults: Array<string> = isEnd ? [...untold(pushed)] : []
  const notifications = appended.filter(({ n, value }) => n > cursor && !isRemoval(value))
  const acknowledged = new Set<number>()
  const ids = new Map<number, string>()
  for (const { atMs, body, code, headers } of deliveries) {
    const numbers = numbersIn(body)
    const id = headers["webhook-id"] ?? ""
    const last = numbers.at(-1) ?? 0
    if (atMs < echoedMs) faults.push(`${id} came before the callback had echoed`)
    for (const [at, n] of numbers.entries()) {
      if (n <= (numbers[at - 1] ?? 0)) faults.push(`${id} holds ${n} out of order`)
      if (n <= cursor) faults.push(`${id} holds ${n}, from before it was registered`)
      const known = ids.get(n) ?? id
      if (known !== id) faults.push(`${n} came as ${known} and as ${id}`)
      ids.set(n, known)
    }
    for (const { n } of notifications) {
      const isMissing = n < last && !acknowledged.has(n) && !numbers.includes(n)
      if (isMissing && (removed.get(n) ?? Infinity) > atMs) {
        faults.push(`${id} holds ${last}, and ${n} was never acknowledged`)
      }
    }
    if (code >= 200 && code < 300) { for (const n of numbers) acknowledged.add(n) }
  }
  for (const { n } of notifications) {
    if (isEnd && !acknowledged.has(n) && !removed.has(n)) faults.push(`${n} was never pushed`)
  }
  return faults
}
