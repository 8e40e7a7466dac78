/** Content and its blobs: effects, and whatever fails or crashes around them. */
import { Effect } from "effect"
import { array, assert, constantFrom, property } from "fast-check"
import { describe, expect, it } from "vitest"
import { content } from "../../actors/content/actor.ts"
import type { ContentMessage } from "../../actors/content/protocol.ts"
import { blobRemovalRetryMs } from "../../actors/limits.ts"
import type { UsageChange, UsageReply } from "../../actors/usage/usage.ts"
import { address, StorageUnavailable, type Variant } from "../../runtime/index.ts"
import { hash, nowMs } from "./cells.ts"
import { noDependencies, noPeers } from "./dependencies.ts"
import { Model } from "./model.ts"

const anonymousRetentionMs = 30 * 86_400_000

const bodyOf = (blobId: string) => ({
  blobId,
  type: "text/plain",
  lengthBytes: 5,
  digest: `sha-${blobId}`
})
const edit = { editHash: hash("edit") }
const password = { passwordHash: hash("password") }
const publish: Variant<ContentMessage, "Publish"> = {
  _tag: "Publish",
  requestId: "r1",
  body: bodyOf("b0"),
  ...edit,
  ...password
}
const overwrite: Variant<ContentMessage, "Overwrite"> = {
  _tag: "Overwrite",
  access: edit,
  body: bodyOf("b2")
}
const remove: ContentMessage = { _tag: "Remove", access: edit }
const describeBy = (access: object): ContentMessage => ({ _tag: "Describe", access })
const receipt = (access: object): ContentMessage => ({
  _tag: "Receipt",
  access,
  value: "<receipt/>"
})
const blobsRemoved = (...blobIds: Array<string>): ContentMessage => ({
  _tag: "BlobsRemoved",
  blobIds
})

describe("content", () => {
  const self = address("content", "c1")
  it("tells itself which blobs are gone, and nothing when that failed", async () => {
    const ids: Array<string> = []
    const remove = (id: string) => Effect.sync(() => void ids.push(id))
    const changes: Array<UsageChange> = []
    const usage = {
      submit: (change: UsageChange) =>
        Effect.sync((): UsageReply => {
          changes.push(change)
          return { _tag: "Counted" }
        })
    }
    const good = content({ anonymousRetentionMs, blobs: { remove }, usage })
    const stored = { _tag: "Removed" } as const
    const action = { _tag: "RemoveBlobs", blobIds: ["b1", "b2"], stored } as const
    expect(await Effect.runPromise(good.perform(action, self, noPeers))).toEqual(
      blobsRemoved("b1", "b2")
    )
    expect(ids).toEqual(["b1", "b2"])
    expect(changes).toEqual([
      { _tag: "Settle", contentId: "c1", stored, blobIds: ["b1", "b2"] }
    ])
    // Neither a blob that stays nor one that still counts is reported as removed.
    const no = () => Effect.fail(new StorageUnavailable({ detail: "no" }))
    for (
      const bad of [{ blobs: { remove: no }, usage }, { blobs: { remove }, usage: { submit: no } }]
    ) {
      expect(
        await Effect.runPromise(
          content({ anonymousRetentionMs, ...bad }).perform(action, self, noPeers)
        )
      ).toBeUndefined()
    }
  })

  it("counts its first body, and waits for nothing if that fails", async () => {
    const actor = new Model(content(noDependencies))
    actor.send(publish, nowMs)
    const stored = { _tag: "Body", blobId: "b0", generation: 1, lengthBytes: 5 }
    expect(actor.actions).toEqual([{ _tag: "CountBody", stored }])
    const [action] = actor.actions
    const submit = () => Effect.fail(new StorageUnavailable({ detail: "no" }))
    const bad = content({ ...noDependencies, usage: { submit } })
    expect(action && await Effect.runPromise(bad.perform(action, self, noPeers))).toBeUndefined()
  })

  it("leaves no blob but the one it shows, whatever fails or crashes in between", () => {
    const commands = array(
      constantFrom("overwrite", "perform", "lose", "restart", "timer", "receipt", "remove"),
      { maxLength: 30 }
    )
    assert(
      property(commands, (sequence) => {
        const actor = new Model(content(noDependencies))
        const blobs = new Set(["b0"])
        let shown: string | undefined = "b0"
        let atMs = nowMs
        let receipts = 0
        const perform = () => {
          for (const action of actor.actions.splice(0)) {
            if (action._tag !== "RemoveBlobs") continue
            const { blobIds } = action
            for (const id of blobIds) blobs.delete(id)
            actor.send({ _tag: "BlobsRemoved", blobIds }, atMs)
          }
        }
        actor.send({ ...publish, body: bodyOf("b0") }, atMs)
        sequence.forEach((command, at) => {
          if (command === "perform") perform()
          else if (command === "lose") actor.actions = []
          else if (command === "restart") actor.restart()
          else if (command === "timer") actor.fireTimer(atMs += blobRemovalRetryMs)
          else if (command === "receipt") {
            const reply = actor.send(receipt(password), atMs)
            if (shown === undefined) expect(reply).toMatchObject({ reason: "Gone" })
            else expect(reply).toMatchObject({ n: ++receipts })
          } else if (command === "remove") {
            actor.send(remove, atMs)
            shown = undefined
          } else if (shown !== undefined) {
            shown = `b${at + 1}`
            blobs.add(shown)
            actor.send({ ...overwrite, body: bodyOf(shown) }, atMs)
          }
          if (shown !== undefined) {
            expect(blobs.has(shown)).toBe(true)
            expect(actor.send(describeBy(edit), atMs))
              .toMatchObject({ view: { body: { blobId: shown } } })
          }
        })
        actor.restart()
        actor.fireTimer(atMs += blobRemovalRetryMs)
        perform()
        expect([...blobs]).toEqual(shown === undefined ? [] : [shown])
        // It expires, or its tombstone does.
        expect(actor.timerAtMs).toBeGreaterThan(atMs)
        expect(actor.log.size).toBe(shown === undefined ? 0 : receipts)
      }),
      { numRuns: 400 }
    )
  })
})
