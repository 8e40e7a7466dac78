/**
 * Loads of actors without cached fences, while commits change them: a stale result must not be
 * cached.
 */
import { ClassicLevel } from "classic-level"
import { Effect } from "effect"
import { expect, it, onTestFinished, vi } from "vitest"
import { address } from "../../../runtime/actor/address.ts"
import { engineNames } from "../../../runtime/embedded/index.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf, itemsOf } from "../../suites/storage-probe.ts"
import { newFolder, withStore } from "./folders.ts"

const ACTORS = 200

const HEAD = 5

const SLOW_MS = 40

const actors = Array.from({ length: ACTORS }, (_, at) => address("mailbox", `m${at}`))

/** Delays results of LevelDB's iterators, as a slow disk does, so that commits overtake them. */
const slowIterators = (): void => {
  const original = ClassicLevel.prototype.iterator
  const spy = vi.spyOn(ClassicLevel.prototype, "iterator")
  spy.mockImplementation(function(this: ClassicLevel, options) {
    const iterator = original.call(this, options)
    const nextv = iterator.nextv.bind(iterator)
    const late = async (size: number) => {
      const rows = await nextv(size)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * SLOW_MS))
      return rows
    }
    return Object.assign(iterator, { nextv: late })
  })
  onTestFinished(() => spy.mockRestore())
}

const item = (n: number) => ({ n, value: `item ${n}` })

it.each(engineNames)("concurrent loads and commits leave the fences right, %s", async (engine) => {
  const folder = await newFolder(engine)
  const filled = await withStore(
    folder,
    Effect.flatMap(Storage, (storage) =>
      storage.commit(actors.map((of, at) =>
        commitOf({
          address: of,
          append: itemsOf(1, HEAD),
          ...(at % 2 === 0 ? { state: "s", head: HEAD } : {})
        })
      )))
  )
  const revisions = filled.map((outcome) => outcome._tag === "Committed" ? outcome.revision : -1)
  slowIterators()
  // A new process has no cached fences.
  await withStore(
    folder,
    Effect.gen(function*() {
      const storage = yield* Storage
      /** With an expected revision of the test, so that nothing is loaded before. */
      const appended = (at: number, expected: number, n: number) =>
        Effect.map(
          storage.commit([
            commitOf({ address: address("mailbox", `m${at}`), expected, append: [item(n)] })
          ]),
          ([outcome]) => outcome?._tag
        )
      yield* Effect.forEach(
        actors,
        (of, at) =>
          Effect.gen(function*() {
            // One load only, since it fills the cache; it begins at any time of the commit.
            const loading = Effect.delay(storage.load(of), (at % 20) * SLOW_MS / 8)
            const removing = Effect.flatMap(storage.load(of), ({ revision }) =>
              storage.commit([
                commitOf({ address: of, expected: revision, state: null })
              ]))
            const [{ head: loaded }] = yield* Effect.all(
              [
                loading,
                at % 4 === 0
                  ? removing
                  : appended(at, revisions[at] ?? -1, HEAD + 1)
              ],
              { concurrency: "unbounded" }
            )
            expect([0, HEAD, HEAD + 1]).toContain(loaded)
            const head = at % 4 === 0 ? 0 : HEAD + 1
            const revision = at % 4 === 0 ? 0 : revisions[at] ?? -1
            expect(yield* appended(at, revision, head + 2)).toBe("Conflict")
            expect(yield* appended(at, revision, head + 1)).toBe("Committed")
            expect((yield* storage.load(of)).head).toBe(head + 1)
            const { length } = yield* storage.read(of, 1, 100)
            expect(length).toBe(head + 1)
          }),
        { concurrency: "unbounded" }
      )
    })
  )
})
