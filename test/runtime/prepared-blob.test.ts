/** A prepared blob stays unless it is certain that its commit does not name it. */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { commitBlob, StorageUnavailable } from "../../runtime/index.ts"
import { makeMemoryBlobs } from "../../runtime/memory/blobs.ts"

async function* source() {
  yield Buffer.from("bytes")
}

const prepared = () => ({ id: "one", source: source(), bytesMax: 10, ownerRemoves: true })

it.each([[true, 5], [false, undefined]])(
  "the commit names it: %s",
  async (isNamed, lengthBytes) => {
    const blobs = makeMemoryBlobs()
    const committing = commitBlob(
      blobs,
      prepared(),
      (info) => Effect.succeed({ isNamed, result: info.lengthBytes })
    )
    expect(await Effect.runPromise(committing)).toBe(5)
    expect((await Effect.runPromise(blobs.info("one")))?.lengthBytes).toBe(lengthBytes)
  }
)

it("is confirmed only when it is certain that its owner names and removes it", async () => {
  const confirmed: Array<string> = []
  const blobs = {
    ...makeMemoryBlobs(),
    confirm: (id: string) => Effect.sync(() => void confirmed.push(id))
  }
  const failure = new StorageUnavailable({ detail: "kept, and nobody is told" })
  const commit = (isNamed: boolean) => () => Effect.succeed({ isNamed, result: undefined })
  await Effect.runPromise(commitBlob(blobs, prepared(), commit(false)))
  await Effect.runPromiseExit(commitBlob(blobs, prepared(), () => Effect.fail(failure)))
  const kept = { ...prepared(), ownerRemoves: false }
  await Effect.runPromise(commitBlob(blobs, kept, commit(true)))
  expect(confirmed).toEqual([])
  await Effect.runPromise(commitBlob(blobs, prepared(), commit(true)))
  expect(confirmed).toEqual(["one"])
})

it("stays when the commit fails or breaks off", async () => {
  const failure = new StorageUnavailable({ detail: "kept, and nobody is told" })
  for (const commit of [Effect.fail(failure), Effect.die("broken"), Effect.interrupt]) {
    const blobs = makeMemoryBlobs()
    await Effect.runPromiseExit(commitBlob(blobs, prepared(), () => commit))
    expect(await Effect.runPromise(blobs.info("one"))).toBeDefined()
  }
})

it("leaves nothing of a source that fails, and commits nothing", async () => {
  const blobs = makeMemoryBlobs()
  const never = () => Effect.die("there is nothing to commit")
  const tooMany = commitBlob(blobs, { ...prepared(), bytesMax: 4 }, never)
  expect(await Effect.runPromise(Effect.flip(tooMany))).toMatchObject({ _tag: "BlobTooLarge" })
  expect(await Effect.runPromise(blobs.info("one"))).toBeUndefined()
})
