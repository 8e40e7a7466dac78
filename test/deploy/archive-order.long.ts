/**
 * The archive of a service that runs: whatever a resource of it refers to is in it too. The store
 * changes between the parts that are read, as it does under a running service.
 */
import { Effect, ManagedRuntime } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { UsageLedger } from "../../actors/usage/ledger.ts"
import type { UsageChange } from "../../actors/usage/usage.ts"
import type { ArchivePart } from "../../deploy/archive/parts.ts"
import { partsOf } from "../../deploy/archive/store-reader.ts"
import { type Address, address, Blobs, Records, Storage,
  StoreContents } from "../../runtime/index.ts"
import type { Commit } from "../../runtime/ports/storage.ts"
import { contentsPage } from "../../runtime/limits.ts"
import { embedded } from "../../runtime/embedded/index.ts"
import { commitOf } from "../suites/commit.ts"

const mailbox = address("mailbox", "m")

const stored = (state: object): string => `1 ${JSON.stringify(state)}`

const published = (id: string) => ({
  _tag: "Published",
  requestId: "r",
  body: { blobId: `${id}=x`, type: "text/plain", lengthBytes: 1, digest: "d" },
  lastModifiedMs: 1,
  generation: 1,
  editHash: "h".repeat(43),
  stale: []
})

const copied = (contentId: string) => ({
  _tag: "Copied",
  copy: { contentId },
  isListed: true,
  checks: 1
})

const task = (n: number) => address("background-task", `m=${n}-fetch`)

const openStore = (dataDir: string) => ManagedRuntime.make(embedded(dataDir))

let dataDir: string
let runtime: ReturnType<typeof openStore>

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "restante-archive-order-"))
  runtime = openStore(dataDir)
})

afterEach(async () => {
  await runtime.dispose()
  rmSync(dataDir, { recursive: true, force: true })
})

const commit = async (one: Partial<Commit> & Pick<Commit, "address">): Promise<void> => {
  const storage = await runtime.runPromise(Storage)
  const { revision } = await Effect.runPromise(storage.load(one.address))
  const [outcome] = await Effect.runPromise(
    storage.commit([commitOf({ expected: revision, ...one })])
  )
  expect(outcome?._tag).toBe("Committed")
}

/** A notification with this content, and the task that the deposit signals. */
const deposit = async (n: number, contentId: string): Promise<void> => {
  await commit({ address: address("content", contentId), state: stored(published(contentId)) })
  await commit({
    address: mailbox,
    append: [{ n, value: contentId }],
    signals: [{ address: task(n), atMs: 5 }]
  })
}

const writeCached = async (n: number, contentId: string): Promise<void> => {
  const records = await runtime.runPromise(Records)
  const value = JSON.stringify({ contentId, type: "text/plain", lengthBytes: 1 })
  await Effect.runPromise(records.write([{ table: "cached", key: `m/${n}`, value }]))
}

/** Reads all parts; `meanwhile` runs once the first actor of each of the kinds has been read. */
const readParts = async (meanwhile: Readonly<Record<string, () => Promise<void>>>) => {
  const [contents, blobs] = [
    await runtime.runPromise(StoreContents),
    await runtime.runPromise(Blobs)
  ]
  const parts: Array<ArchivePart> = []
  const kinds = new Set<string>()
  for await (const part of partsOf({ contents, blobs })) {
    parts.push(part)
    const kind = part._tag === "Actor" ? part.address.kind : part._tag
    if (kinds.has(kind)) continue
    kinds.add(kind)
    await meanwhile[kind]?.()
  }
  const actors = parts.filter((part) => part._tag === "Actor")
  const found = ({ id, kind }: Address) =>
    actors.find(({ address: of }) => of.kind === kind && of.id === id)
  return { kinds: [...kinds], found, parts }
}

/** The contents to which the notifications of the archive refer, and which it lacks. */
const missing = ({ found }: Awaited<ReturnType<typeof readParts>>) =>
  (found(mailbox)?.items ?? [])
    .filter(({ value }) => found(address("content", value)) === undefined)

describe("the archive of a store that changes meanwhile", () => {
  beforeEach(async () => {
    await commit({ address: mailbox, state: stored({ _tag: "Open" }) })
    await deposit(1, "c1")
  })

  for (const kind of ["content", "mailbox", "background-task"]) {
    it(`has the content of each notification: a deposit after the first ${kind}`, async () => {
      // The store is read in pages, and the mailbox is not in the page of the first content.
      for (let n = 0; n < contentsPage; n++) {
        await commit({ address: address("content", `d${n}`), state: stored(published(`d${n}`)) })
      }
      const archive = await readParts({ [kind]: () => deposit(2, "a2") })
      expect(archive.found(mailbox)?.items).toContainEqual({ n: 1, value: "c1" })
      expect(missing(archive)).toEqual([])
    })
  }

  it("reads accounts, whose removal removes others, before what they own", async () => {
    for (const kind of ["account", "notification", "registration", "session"]) {
      await commit({ address: address(kind, "x"), state: stored({ _tag: "Other" }) })
    }
    const { kinds } = await readParts({})
    expect(kinds.filter((kind) => kind !== "Record")).toEqual([
      "account",
      "notification",
      "registration",
      "mailbox",
      "background-task",
      "content",
      "session"
    ])
  })

  it("has a task that is retried for the first time while the tasks are read", async () => {
    await commit({ address: task(0), state: stored({ _tag: "Retrying", tries: 1, nextAtMs: 7 }) })
    const state = stored({ _tag: "Retrying", tries: 1, nextAtMs: 9 })
    const { found } = await readParts({
      "background-task": () => commit({ address: task(1), state, timer: 9 })
    })
    expect(found(task(1))?.timer).toBeGreaterThan(0)
  })

  it("has a task that began after the mailbox was read as one that has not begun", async () => {
    await commit({ address: task(1), state: stored(copied("copy1")), timer: null })
    await commit({ address: address("content", "copy1"), state: stored(published("copy1")) })
    await writeCached(1, "copy1")
    const archive = await readParts({
      mailbox: async () => {
        await deposit(2, "a2")
        await commit({ address: address("content", "copy2"), state: stored(published("copy2")) })
        await commit({ address: task(2), state: stored(copied("copy2")), timer: null })
        await writeCached(2, "copy2")
      }
    })
    expect(archive.found(task(1))?.state).toBe(stored(copied("copy1")))
    expect(archive.found(task(2))).toMatchObject({ state: undefined, timer: 5 })
    expect(archive.found(address("content", "copy2"))).toBeUndefined()
    const cached = archive.parts.filter((part) => part._tag === "Record")
    expect(cached.map(({ key }) => key)).toEqual(["m/1"])
  })

  it("keeps content that came with a notification, whose task began too late", async () => {
    const idRandom = "r".repeat(22)
    const inlined = address("background-task", "m=1-inlined")
    const state = { ...copied("c1"), copy: { contentId: "c1", idRandom } }
    const archive = await readParts({
      mailbox: () => commit({ address: inlined, state: stored(state), timer: 3 })
    })
    expect(archive.found(inlined)).toMatchObject({ state: undefined, timer: 3 })
    expect(missing(archive)).toEqual([])
  })

  it("counts no content that was published after the contents were read", async () => {
    const records = await runtime.runPromise(Records)
    const ledger = new UsageLedger(records, {
      anonymousBytesMax: 1e9,
      networkBytesMax: 1e9,
      accountBytesMax: 1e9
    })
    const submit = (change: UsageChange) => Effect.runPromise(ledger.submit(change))
    const reserve = (contentId: string, owner: string) =>
      submit({
        _tag: "Reserve",
        contentId,
        reservation: { id: `${contentId}=x`, bytes: 1, dueMs: 9 },
        publication: { owner, atMs: 5 }
      })
    const count = async (contentId: string, owner: string) => {
      await reserve(contentId, owner)
      const stored = { _tag: "Body", blobId: `${contentId}=x`, generation: 1, lengthBytes: 1 }
      await submit({ _tag: "Settle", contentId, stored } as UsageChange)
    }
    await count("c1", "alice")
    await commit({
      address: address("content", "c2"),
      state: stored({ _tag: "Removed", stale: ["c2=x"], receiptsLeft: 0 }),
      timer: 7
    })
    await count("c2", "alice")
    const one = await Effect.runPromise(ledger.total("alice"))
    const archive = await readParts({
      content: async () => {
        for (const id of ["a-late", "b-late"]) {
          await commit({ address: address("content", id), state: stored(published(id)) })
          await count(id, id.startsWith("a") ? "alice" : "bob")
        }
        await reserve("on-its-way", "alice")
      }
    })
    const found = archive.parts.filter((part) => part._tag === "Record")
    const keysOf = (of: string) =>
      found.filter(({ table }) => table === of).map(({ key }) => key.replace(/^(.*)\d{13}./, "$1"))
    expect(keysOf("content-usage").sort()).toEqual(["c1", "c2", "on-its-way"])
    expect(keysOf("content-listing").sort()).toEqual([
      "account=alice/c1",
      "account=alice/c2",
      "all/c1",
      "all/c2"
    ])
    expect(keysOf("content-reservations")).toHaveLength(1)
    const totals = found.filter(({ table }) => table === "usage-totals")
    expect(totals.map(({ key, value }) => [key, JSON.parse(value)])).toEqual([
      ["account=alice", { bytes: one.bytes / 2 * 3, contents: 3 }]
    ])
  })

  it("lists no copy that was stored after the contents were read", async () => {
    const archive = await readParts({ content: () => writeCached(1, "b-late") })
    expect(archive.parts.filter((part) => part._tag === "Record")).toEqual([])
  })
})
