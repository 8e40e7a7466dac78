/** Opens mailboxes on a measured node, and fills one. */
import type { Bench, LargeStore } from "./line.ts"
import type { Running } from "./process.ts"
import { wrk } from "./wrk.ts"

/** Value of the Authorization field of the node's admin. */
export const authorization = (token: string): string =>
  `Basic ${Buffer.from(`admin:${token}`).toString("base64")}`

/** Opens a mailbox (A9); resolves to the path with its shared secret. */
export const openMailbox = async (node: Running, name: string): Promise<string> => {
  const answer = await fetch(`${node.origin}/mailboxes`, {
    method: "POST",
    headers: { Authorization: authorization(node.token), Slug: name }
  })
  const text = await answer.text()
  const shared = /<shared href="https?:\/\/[^/"]+([^"]+)"/.exec(text)?.[1]
  if (answer.status !== 201 || shared === undefined) {
    throw new Error(`opening a mailbox was answered ${answer.status}: ${text}`)
  }
  return shared
}

/** Opens the mailboxes `m0`, `m1` and so on. */
export const openMailboxes = async (node: Running, count: number): Promise<void> => {
  for (let at = 0; at < count; at++) await openMailbox(node, `m${at}`)
}

const largeNotifications = 1_000_000
const fillSeconds = 10
const fillWithinMs = 240_000

/** A store with one mailbox of a million notifications, each deposited over HTTP. */
export const fillLarge = async (bench: Bench): Promise<LargeStore> => {
  const folder = bench.folder("large")
  const node = await bench.serve(folder)
  const shared = await openMailbox(node, "large")
  const startedMs = performance.now()
  let notifications = 0
  for (let round = 0; notifications < largeNotifications; round++) {
    if (performance.now() - startedMs > fillWithinMs) {
      throw new Error(`only ${notifications} notifications were stored in ${fillWithinMs} ms`)
    }
    const { requests } = await wrk({
      origin: node.origin,
      script: "deposit",
      args: [`fill${round}`, "/mailboxes/large", "0"],
      connections: 128,
      seconds: fillSeconds
    })
    notifications += requests
    bench.say(`${notifications} notifications stored`)
  }
  await node.stop()
  return { folder, notifications, shared, token: node.token }
}
