/** Actors in a cluster's store, written as a node would have stored them, without a node. */
import { Effect, Layer } from "effect"
import { address } from "../../runtime/actor/address.ts"
import { connection } from "../../runtime/nats/connection/connection.ts"
import { natsStorage } from "../../runtime/nats/storage/storage.ts"
import { type Commit, Storage } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/commit.ts"

const [servers = "", what = "mailboxes", count = "0"] = process.argv.slice(2)

const groupSize = 1_000
const groupsAtOnce = 4
const itemsEach = 500
const inAnHourMs = Date.now() + 3_600_000

const state = JSON.stringify({
  _tag: "Open",
  owner: "admin",
  requestId: "r".repeat(22),
  createdAtMs: Date.now(),
  settings: { title: "", deposit: "anyone", retentionMs: 2_592_000_000, fetch: "lazy" },
  passwordHash: "p".repeat(43),
  sharedHash: "s".repeat(43),
  version: 1
})
const item = `1800000000000 ${"i".repeat(44)} <item><description>${"x".repeat(250)}</description>`

const commitOfActor = (n: number): Commit =>
  commitOf({
    address: what === "notifications" ? address("box", `n${n}`) : address("mailbox", `m${n}`),
    state,
    head: what === "notifications" ? itemsEach : 0,
    append: what === "notifications"
      ? Array.from({ length: itemsEach }, (_, at) => ({ n: at + 1, value: item }))
      : [],
    timer: what === "timers" ? inAnHourMs + n : undefined
  })

const fill = Effect.gen(function*() {
  const storage = yield* Storage
  const size = what === "notifications" ? 2 : groupSize
  const commits = what === "notifications" ? Number(count) / itemsEach : Number(count)
  const groups = Array.from({ length: Math.ceil(commits / size) }, (_, at) => at * size)
  yield* Effect.forEach(
    groups,
    (from) => {
      const length = Math.min(size, commits - from)
      return Effect.map(
        storage.commit(Array.from({ length }, (_, at) => commitOfActor(from + at))),
        (outcomes) => {
          const isRefused = outcomes.some(({ _tag }) => _tag !== "Committed")
          if (isRefused) throw new Error("a commit was refused")
        }
      )
    },
    { concurrency: groupsAtOnce, discard: true }
  )
})

const layer = Layer.provide(
  natsStorage({}),
  connection({ servers: servers.split(","), name: "fill" })
)
await Effect.runPromise(Effect.scoped(Effect.provide(fill, layer)))
process.exit(0)
