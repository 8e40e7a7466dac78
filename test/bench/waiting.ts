/** Stores waiting notifications directly, as the actor and A5 would have stored them. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { address } from "../../runtime/actor/address.ts"
import { encodeStoredState } from "../../runtime/actor/format.ts"
import { embedded } from "../../runtime/embedded/index.ts"
import { Records } from "../../runtime/ports/records.ts"
import { type Commit, Storage } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/commit.ts"

const [folder = "", count = "0", recipient = "", dueInMs = "0"] = process.argv.slice(2)

const groupSize = 1_000
const documentChars = 400
const keyDigits = 13
const newestMs = 9_999_999_999_999

const head = "<notification><item><description>"
const tail = "</description><url>http://sender.test/m</url></item></notification>"
const document = head + "x".repeat(documentChars - head.length - tail.length) + tail

interface Stored {
  readonly id: string
  readonly listingKey: string
  readonly atMs: number
}

const waitingNotification = ({ atMs, id, listingKey }: Stored): Commit => {
  const nextAtMs = atMs + Number(dueInMs)
  const state = {
    _tag: "Queued",
    account: "admin",
    requestId: id,
    createdAtMs: atMs,
    listingKey,
    traceId: "1".repeat(32),
    recipients: [{ to: recipient, status: "waiting", attempts: 0, tries: 0, nextAtMs }],
    version: 1,
    cleaned: 1,
    chars: document.length
  }
  return commitOf({
    address: address("notification", id),
    state: encodeStoredState({ format: 1, text: JSON.stringify(state) }),
    head: 1,
    append: [{ n: 1, value: document }],
    timer: nextAtMs
  })
}

const fill = Effect.gen(function*() {
  const storage = yield* Storage
  const records = yield* Records
  for (let written = 0; written < Number(count); written += groupSize) {
    const atMs = Date.now()
    const group = Array.from({ length: Math.min(groupSize, Number(count) - written) }, () => {
      const id = randomUUID()
      return {
        id,
        atMs,
        listingKey: `admin/${String(newestMs - atMs).padStart(keyDigits, "0")}.${id}`
      }
    })
    yield* records.write(
      group.map(({ listingKey }) => ({ table: "outgoing", key: listingKey, value: "waiting" }))
    )
    const outcomes = yield* storage.commit(group.map(waitingNotification))
    if (outcomes.some(({ _tag }) => _tag !== "Committed")) throw new Error("a commit was refused")
  }
})

await Effect.runPromise(Effect.provide(fill, embedded(folder)))
