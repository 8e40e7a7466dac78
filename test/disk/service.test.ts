/**
 * The built service on a disk that stalls, fails and is full, with a clock that jumps, and without
 * file descriptors. It loses nothing that it accepted, refuses what it cannot store, continues to
 * serve reads, and recovers after the fault without a restart.
 */
import { execFileSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, expectStatus, pathOf, send } from "../e2e/client.ts"
import { cleanUp, eventually, pause, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { note } from "../results.ts"
import { Deposits } from "./deposits.ts"
import { FaultyDisk } from "./faults.ts"

/** The service retries recovery every 5 s at most. */
const recoversWithinMs = 120_000
const recoveredWithinMs = 120_000
const large = Buffer.alloc(200_000, "l")
const problemType = "application/problem+xml; charset=utf-8"
const hourS = 3_600

afterAll(cleanUp)

const fail = (text: string): never => {
  throw new Error(text)
}

const problemOf = ({ headers, status, text }: Answer) => ({
  status,
  type: headers.get("content-type"),
  slug: /(storage-[a-z]+)/.exec(text)?.[1]
})

describe.each(["rocksdb", "leveldb"] as const)("on %s, the service", (engine) => {
  const dataDir = temporaryFolder()
  const faults = new FaultyDisk(dataDir)
  let service: Service
  let deposits: Deposits
  /** A mailbox without pending writes, since a read waits for a pending write of its actor. */
  let quiet: Deposits
  let contentPath = ""
  let tried = 0

  beforeAll(async () => {
    service = await start({ dataDir, env: { STORAGE_ENGINE: engine, ...faults.env } })
    deposits = await Deposits.open(service.url, "faulty")
    quiet = await Deposits.open(service.url, "quiet")
    expectStatus(await quiet.make(service.url) ?? fail("no answer"), 202)
    // The service caches an item at its first read.
    await quiet.verify(service.url)
    const published = await send(service.url, "/content", { method: "POST", body: large })
    contentPath = pathOf(expectStatus(published, 202).headers.get("location"))
    for (let n = 0; n < 5; n++) expectStatus(await make(), 202)
  })
  afterAll(() => faults.close())

  const make = async (): Promise<Answer> => {
    return await deposits.make(service.url) ?? fail(`there was no answer:\n${service.output}`)
  }

  const readsGoOn = async (): Promise<void> => {
    await quiet.verify(service.url)
    expect(expectStatus(await send(service.url, contentPath), 200).bytes.equals(large)).toBe(true)
    expectStatus(await send(service.url, "/livez"), 200)
  }

  /** Waits until the service accepts deposits again, and verifies all accepted ones. */
  const recovers = async (): Promise<void> => {
    await eventually(
      recoversWithinMs,
      "it accepts deposits again",
      async () => (await make()).status === 202 ? true : undefined,
      100
    )
    await eventually(
      recoversWithinMs,
      "it is ready",
      async () => (await send(service.url, "/readyz")).status === 200 ? true : undefined
    )
    await readsGoOn()
    await deposits.verify(service.url)
    tried++
  }

  it("responds to reads while flushes stall, and to waiting deposits afterwards", async () => {
    faults.disk("flush", "stalls")
    const waiting = Array.from({ length: 5 }, () => make())
    await eventually(
      recoveredWithinMs,
      "a flush stalls",
      () => faults.stalled > 0 ? true : undefined
    )
    for (let n = 0; n < 5; n++) await readsGoOn()
    expect(faults.stalled).toBeGreaterThan(0)
    expect(deposits.maybe.size).toBe(5)
    faults.disk("flush", "asEver")
    for (const answer of await Promise.all(waiting)) expectStatus(answer, 202)
    await recovers()
  })

  it.each<readonly ["flush" | "write", "EIO" | "ENOSPC", number, string]>([
    ["flush", "EIO", 503, "storage-unavailable"],
    ["write", "EIO", 503, "storage-unavailable"],
    ["write", "ENOSPC", 507, "storage-full"]
  ])("refuses while every %s fails with %s, and recovers", async (kind, error, status, slug) => {
    faults.disk(kind, "fails", error)
    for (let n = 0; n < 5; n++) {
      expect(problemOf(await make())).toEqual({ status, slug, type: problemType })
      await readsGoOn()
      // By now the service has tried to recover.
      await pause(100)
    }
    const content = await send(service.url, "/content", { method: "POST", body: large })
    expect(content.status).toBe(status)
    expectStatus(await send(service.url, "/readyz"), 503)
    expect(faults.failed).toBeGreaterThan(0)
    faults.disk(kind, "asEver")
    await recovers()
  })

  it("recovers also when the store cannot be reopened for some time", async () => {
    faults.disk("write", "fails")
    expect((await make()).status).toBe(503)
    // Opening the store only reads, so the disk appears to work.
    faults.disk("read", "fails")
    faults.disk("write", "asEver")
    const { failed } = faults
    await eventually(recoversWithinMs, "it tries", () => faults.failed > failed + 2 || undefined)
    expectStatus(await send(service.url, "/livez"), 200)
    expect((await make()).status).toBe(503)
    faults.disk("read", "asEver")
    await recovers()
  })

  it.each([hourS, -hourS, 0])("preserves data and order with any clock: %i s", async (offS) => {
    faults.clock(offS)
    for (let n = 0; n < 5; n++) expectStatus(await make(), 202)
    await eventually(recoveredWithinMs, "the service has this time", async () => {
      const date = (await send(service.url, "/livez")).headers.get("date") ?? ""
      const isOff = Math.abs(Date.parse(date) - Date.now() - offS * 1000) < (hourS * 1000) / 2
      return isOff ? true : undefined
    })
    await recovers()
  })

  it("recovers after a pause of the process", async () => {
    process.kill(service.pid, "SIGSTOP")
    const waiting = Array.from({ length: 5 }, () => make())
    await pause(1_000)
    process.kill(service.pid, "SIGCONT")
    for (const answer of await Promise.all(waiting)) expectStatus(answer, 202)
    await recovers()
  })

  it("listens without free file descriptors, and accepts requests afterwards", async () => {
    const limit = (files: number) =>
      execFileSync("prlimit", ["--pid", String(service.pid), `--nofile=${files}:4096`])
    const open = readdirSync(`/proc/${service.pid}/fd`).length
    limit(open + 4)
    const sockets: Array<Socket> = []
    for (let n = 0; n < 50; n++) {
      const socket = connect(service.port, "127.0.0.1")
      socket.on("error", () => undefined)
      sockets.push(socket)
    }
    await eventually(
      recoveredWithinMs,
      "all descriptors are taken",
      () => readdirSync(`/proc/${service.pid}/fd`).length >= open + 4 || undefined
    )
    const tries = Array.from({ length: 5 }, () => deposits.make(service.url))
    const answers = await Promise.all(tries.map((one) => Promise.race([one, pause(2_000)])))
    for (const answer of answers) {
      if (answer !== undefined) expect([202, 503]).toContain(answer.status)
    }
    for (const socket of sockets) socket.destroy()
    limit(4_096)
    await Promise.all(tries)
    await recovers()
  })

  it("has everything after kill -9", async () => {
    await service.kill()
    service = await start({ dataDir, env: { STORAGE_ENGINE: engine, ...faults.env } })
    await recovers()
    expect((await service.stop()).code).toBe(0)
    const operations = deposits.accepted.size
    note({
      name: `a disk that stalls, fails, is full; clocks; descriptors (${engine})`,
      runs: 1,
      faults: tried,
      operations
    })
  })
})
