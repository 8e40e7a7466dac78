/**
 * Flushes of the database fail while content is published and replaced. The batch of a failed flush
 * may still be in the log. Content that was acknowledged stays, a repeated publication finds
 * what was stored, and no blob is without its file.
 */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, expectStatus, linkOf, pathOf, send } from "../e2e/client.ts"
import { blobFiles, cleanUp, command, eventually, pause, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { FaultyDisk } from "./faults.ts"

const recoversWithinMs = 120_000
const rounds = 10
/** After its key is stored a request commits three times within this time. */
const busyMs = 8
/** By then the key of a request is stored, whose body has not ended. */
const begunMs = 150
/** Below and above the limit for blobs in the database. */
const sizes = [2_000, 200_000]

interface Content {
  readonly path: string
  readonly edit: string
  /** The bytes that a reader may get: after a failed PUT the old or the new ones. */
  bodies: ReadonlyArray<Buffer>
}

afterAll(cleanUp)

describe.each(["rocksdb", "leveldb"] as const)("on %s", (engine) => {
  const dataDir = temporaryFolder()
  // The files of blobs are in another folder: their flushes succeed.
  const faults = new FaultyDisk(join(dataDir, "store"))
  const contents: Array<Content> = []
  let service: Service
  let ambiguous = 0

  beforeAll(async () => {
    service = await start({ dataDir, env: { STORAGE_ENGINE: engine, ...faults.env } })
  })
  afterAll(() => faults.close())

  const bodyOf = (text: string, round: number): Buffer =>
    Buffer.alloc(sizes[round % sizes.length] ?? 0, `${text} ${round} `)

  const keyed = (round: number) => ({ "idempotency-key": `"the key of the round ${round}"` })

  const publish = (round: number): Promise<Answer> =>
    send(service.url, "/content", {
      method: "POST",
      headers: keyed(round),
      body: bodyOf("published", round)
    })

  /** Publishes, and calls `meanwhile` when the key is stored and the body has just ended. */
  const publishSlowly = async (round: number, meanwhile: () => void): Promise<number> => {
    const body = bodyOf("published", round)
    async function* halves() {
      yield body.subarray(0, 1_000)
      await pause(begunMs)
      yield body.subarray(1_000)
      meanwhile()
    }
    const init = { method: "POST", headers: keyed(round), body: halves(), duplex: "half" }
    // Node's fetch takes an async iterable as a body; the DOM's types do not say so.
    const response = await fetch(`${service.url}/content`, init as unknown as RequestInit)
    await response.arrayBuffer()
    return response.status
  }

  /** The status of a request at whose end flushes begin to fail; then the disk works again. */
  const failing = async (
    round: number,
    request: (begin: () => void) => Promise<number>
  ): Promise<number> => {
    let isOver = false
    let timer: NodeJS.Timeout | undefined
    const status = await request(() => {
      // A request that is rejected early sends the rest of its body later.
      if (isOver) return
      timer = setTimeout(() => faults.disk("flush", "fails"), busyMs * round / rounds)
    })
    await pause(busyMs)
    isOver = true
    clearTimeout(timer)
    faults.disk("flush", "asEver")
    if (status === 503) ambiguous++
    return status
  }

  /** The answer to a request that is repeated until the store has recovered. */
  const repeat = (request: () => Promise<Answer>): Promise<Answer> =>
    eventually(recoversWithinMs, "the store has recovered", async () => {
      const answer = await request()
      return answer.status === 503 || answer.status === 409 ? undefined : answer
    }, 50)

  const expectReadable = async (): Promise<void> => {
    for (const { bodies, path } of contents) {
      const { bytes } = expectStatus(await repeat(() => send(service.url, path)), 200)
      expect(bodies.some((body) => body.equals(bytes)), path).toBe(true)
    }
  }

  it("a repeated publication finds what was stored", async () => {
    for (let round = 0; round < rounds; round++) {
      await failing(round, (begin) => publishSlowly(round, begin))
      const again = expectStatus(await repeat(() => publish(round)), 202)
      const path = pathOf(again.headers.get("location"))
      contents.push({ path, edit: linkOf(again, "edit"), bodies: [bodyOf("published", round)] })
      await expectReadable()
    }
    expect(new Set(contents.map(({ path }) => path)).size).toBe(rounds)
    expect(ambiguous).toBeGreaterThan(0)
  })

  it("a failed PUT leaves the old or the new body", async () => {
    ambiguous = 0
    for (const [round, content] of contents.entries()) {
      const body = bodyOf("replaced", round + 1)
      const status = await failing(round, async (begin) => {
        begin()
        return (await send(service.url, content.edit, { method: "PUT", body })).status
      })
      content.bodies = status === 204 ? [body] : [...content.bodies, body]
      await expectReadable()
    }
    expect(ambiguous).toBeGreaterThan(0)
  })

  it("has all content after kill -9, and every blob has its file", async () => {
    await service.kill()
    service = await start({ dataDir, env: { STORAGE_ENGINE: engine } })
    await expectReadable()
    const large = contents.filter(({ bodies }) => (bodies[0]?.length ?? 0) > 100_000)
    // The start removes the bytes that nobody names.
    await eventually(
      recoversWithinMs,
      "orphans are removed",
      () => blobFiles(dataDir).length <= contents.length || undefined
    )
    expect(large.length).toBeGreaterThan(0)
    await expectReadable()
    expect((await service.stop()).code).toBe(0)
    const checked = await command(["check", "--data-dir", dataDir])
    expect(checked.output).toContain(`${dataDir}: ok`)
  })
})
