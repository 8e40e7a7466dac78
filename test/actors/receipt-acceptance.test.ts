/** Which messages of other services take receipts, and when a task may make its request. */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { admitFetch, admitReceipt, boundsOf,
  makeRequestHistory } from "../../actors/background-task/admission.ts"
import { namesReceipts,
  ReceiptAcceptance } from "../../actors/background-task/receipt-acceptance.ts"
import { anonymousPerMinuteMax, receiptAcceptanceFreshMs,
  redirectsMax } from "../../actors/limits.ts"
import type { StoredNotification } from "../../actors/mailbox/index.ts"
import type { OutboundHead } from "../../actors/outbound/protocol.ts"
import { noDependencies } from "./dependencies.ts"

it("names the type of receipts itself, not a range of types", () => {
  expect(namesReceipts(["text/xml", "application/xml"])).toBe(true)
  for (const types of [[], ["*/*"], ["application/*"], ["application/json"]]) {
    expect(namesReceipts(types)).toBe(false)
  }
})

it("remembers an answer for a day, for each URI and password", () => {
  const acceptance = new ReceiptAcceptance()
  const open = { url: "https://sender.example/1", password: undefined }
  expect(acceptance.known(open, 1)).toBeUndefined()
  acceptance.record(open, true, 1)
  acceptance.record({ ...open, password: "secret" }, false, 1)
  expect(acceptance.known(open, receiptAcceptanceFreshMs)).toBe(true)
  expect(acceptance.known(open, receiptAcceptanceFreshMs + 1)).toBeUndefined()
  expect(acceptance.known({ ...open, password: "secret" }, 2)).toBe(false)
  expect(acceptance.known({ ...open, url: "https://sender.example/2" }, 2)).toBeUndefined()
})

const stored = (network: string | undefined): StoredNotification => ({
  atMs: Date.now(),
  idRandom: "random",
  digest: "digest",
  fragment: "<item/>",
  network,
  account: undefined
})

/** Who answers each HEAD, and records it. */
const asked = (acceptPost: ReadonlyArray<string>) => {
  const heads: Array<OutboundHead> = []
  const outbound = {
    ...noDependencies.outbound,
    head: (head: OutboundHead) =>
      Effect.sync(() => {
        heads.push(head)
        return { _tag: "Probed", acceptPost } as const
      })
  }
  return { heads, deps: { ...noDependencies, outbound } }
}

it("makes at most ten requests a minute for a network to one origin, a HEAD counted", async () => {
  const { deps, heads } = asked(["application/xml"])
  const stranger = stored("198.51.100.0/24")
  const history = makeRequestHistory()
  const bounds = boundsOf(history, stranger, "alice")
  const admissions: Array<unknown> = []
  for (let n = 0; n < anonymousPerMinuteMax; n++) {
    const pointer = { url: `https://victim.example/${n}`, password: undefined }
    const admit = n % 2 === 0 ? admitReceipt : admitFetch
    admissions.push(await Effect.runPromise(admit(deps, history, stranger, pointer, bounds)))
  }
  const admitted = admissions.filter((one) => one === "admitted").length
  expect(admitted + heads.length).toBe(anonymousPerMinuteMax - redirectsMax)
  expect(admissions.at(-1)).toMatchObject({ _tag: "Deferred" })
  // Nothing is counted where an account deposits.
  for (let n = 0; n < 2 * anonymousPerMinuteMax; n++) {
    const pointer = { url: `https://victim.example/known/${n}`, password: undefined }
    const admission = admitReceipt(deps, history, stored(undefined), pointer, bounds)
    expect(await Effect.runPromise(admission)).toBe("admitted")
  }
})

it("asks a message once whether it takes receipts, at an address in reach", async () => {
  const { deps, heads } = asked(["text/plain"])
  const history = makeRequestHistory()
  const pointer = { url: "https://sender.example/1", password: "secret" }
  for (let n = 0; n < 3; n++) {
    const stranger = stored("198.51.100.0/24")
    const bounds = boundsOf(history, stranger, "alice")
    const admission = admitReceipt(deps, history, stranger, pointer, bounds)
    expect(await Effect.runPromise(admission)).toBe("never")
  }
  const headers = { "Message-Password": "secret" }
  const admitRedirect = expect.any(Function)
  const cause = { kind: "network", id: "198.51.100.0/24" }
  expect(heads).toEqual([{ uri: pointer.url, headers, cause, reach: "public", admitRedirect }])
})

it("counts requests for whoever deposited, or else for the mailbox", () => {
  const unknown = stored(undefined)
  expect(boundsOf(makeRequestHistory(), { ...unknown, account: "bob" }, "alice"))
    .toEqual({ reach: "allowed", cause: { kind: "account", id: "bob" } })
  expect(boundsOf(makeRequestHistory(), unknown, "alice"))
    .toEqual({ reach: "allowed", cause: { kind: "mailbox", id: "alice" } })
})
