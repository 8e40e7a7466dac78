/**
 * Backing up, restoring and moving with the built binary, around a history of clients: every
 * acknowledged change is there afterwards, and a corrupted archive changes nothing.
 */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { address, shardOf } from "../../../runtime/index.ts"
import { asAdmin, expectStatus, postXml } from "../../e2e/client.ts"
import { History } from "../../e2e/history.ts"
import { cleanUp, command, eventually, folderWithKeyOf, Running, start,
  temporaryFolder } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

const binary = new URL("../../../dist/bin/restante.js", import.meta.url).pathname

const servers: Array<NatsServer> = []

const natsServer = async (): Promise<NatsServer> => {
  const server = await startServer()
  servers.push(server)
  return server
}

afterAll(async () => {
  cleanUp()
  await Promise.all(servers.map((server) => server.close()))
})

const bytesOf = (length: number, seed: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, at) => (at * 31 + seed * 17 + (at >> 7)) & 0xff))

/** A round of clients' operations on a service. */
const use = async (history: History, base: string, round: string): Promise<void> => {
  const box = await history.open(base, `box-${round}`)
  if (box === undefined) throw new Error("no mailbox")
  for (let n = 0; n < 12; n++) await history.deposit(base, box, `${round}-${n}`)
  await history.remove(base, box)
  await history.remove(base, box)
  const small = await history.publish(base, bytesOf(1_500, 1))
  const large = await history.publish(base, bytesOf(300_000, 2))
  if (small === undefined || large === undefined) throw new Error("nothing published")
  await history.overwrite(base, small, bytesOf(90_000, 3))
  const gone = await history.publish(base, bytesOf(70_000, 4))
  if (gone !== undefined) await history.unpublish(base, gone)
  const session = await history.begin(base)
  if (session === undefined) throw new Error("no session")
  await history.answer(base, session, "name", `Galahad ${round}`)
  await history.answer(base, session, "quest", "the Grail")
}

const verify = async (history: History, base: string): Promise<void> => {
  for (const box of history.boxes) await history.verifyBox(base, box)
  for (const content of history.contents) await history.verifyContent(base, content)
  for (const session of history.sessions) await history.verifySession(base, session)
  expect(history.unknown).toBe(0)
}

/** Runs a command that must succeed. */
const done = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const ended = await command(args, env)
  expect(ended, ended.output).toMatchObject({ code: 0 })
  return ended.output
}

/** Counts as a command with `--json` prints them. */
const reported = (output: string): { readonly counts: Readonly<Record<string, unknown>> } => {
  // The command prints this JSON; the test reads only counts.
  const value = JSON.parse(output) as { readonly counts: Readonly<Record<string, unknown>> }
  return value
}

/** Corrupts a state, a blob and a signal of a cluster, without the service. */
const spoil = async (url: string): Promise<void> => {
  const nc = await connect({ servers: [url] })
  const jsm = await jetstreamManager(nc, { timeout: 20_000 })
  for (let at = 0; at < 4; at++) {
    const name = `KV_actors-${at}`
    const subjects_filter = `$KV.actors-${at}.*.session.*.state`
    const { state } = await jsm.streams.info(name, { subjects_filter })
    for (const subject of Object.keys(state.subjects ?? {})) nc.publish(subject, "{spoiled")
  }
  const shard = shardOf(address("ghost", "x"))
  nc.publish(`$KV.actors-${shard % 4}.signal.${shard}.ghost.x`, "5")
  await nc.flush()
  await jsm.streams.purge("KV_blobs", { filter: "$KV.blobs.head.>" })
  await nc.close()
}

describe("archives", () => {
  const history = new History()
  const dataDir = temporaryFolder()
  const archives = temporaryFolder()
  const archive = join(archives, "one.restante")

  beforeAll(async () => {
    const service = await start({ dataDir })
    await use(history, service.url, "a")
    const locked = await command(["backup", archive, "--data-dir", dataDir])
    expect(locked.code).toBe(75)
    expect(locked.output).toContain("is in use by process")
    expect((await service.stop()).code).toBe(0)
    await done(["backup", archive, "--data-dir", dataDir])
  })

  it("restore a store into another folder, with equal counts", async () => {
    const copy = folderWithKeyOf(dataDir)
    await done(["restore", archive, "--data-dir", copy])
    const again = join(archives, "again.restante")
    const counts = reported(await done(["backup", again, "--plain", "--json", "--data-dir", copy]))
    const before = reported(
      await done(["backup", "-", "--json", "--data-dir", dataDir], {}).then(
        // The bytes of the archive precede the document.
        (output) => output.slice(output.indexOf("{\n  \"location\""))
      )
    )
    expect(counts.counts).toEqual(before.counts)
    expect(await done(["check", "--data-dir", copy])).toContain(": ok")
    const service = await start({ dataDir: copy })
    await verify(history, service.url)
    expect((await service.stop()).code).toBe(0)
    const there = await command(["backup", again, "--data-dir", copy])
    expect(there).toMatchObject({
      code: 1,
      output: `restante: ${again} already exists: give a new file\n`
    })
    const full = await command(["restore", archive, "--data-dir", copy])
    expect(full.code).toBe(75)
    expect(full.output).toContain("there is a store already")
  })

  it("move into a cluster and back, with nodes that run", async () => {
    const { url } = await natsServer()
    const env = { NATS_URL: url, SECRET_KEY_FILE: join(dataDir, "secret-key") }
    const moved = await done(["migrate", "--to", url, "--data-dir", dataDir, "--json"])
    expect(JSON.parse(moved)).toMatchObject({ same: true })
    const twice = await command(["migrate", "--to", url, "--data-dir", dataDir])
    expect(twice.code).toBe(75)
    expect(twice.output).toContain("there is a store already")
    const all = new History()
    for (const name of ["boxes", "contents", "sessions"] as const) {
      // Both are histories: the lists are of one kind.
      const list = all[name] as Array<unknown>
      list.push(...history[name])
    }
    const node = await start({ env })
    await verify(all, node.url)
    await use(all, node.url, "b")
    expect(await done(["check"], env)).toContain("ok")
    const file = join(archives, "cluster.restante")
    // Clients continue during the backup, which has all earlier acknowledged changes.
    const later = new History()
    const busy = use(later, node.url, "c").then(() => use(later, node.url, "d"))
    await done(["backup", file], env)
    await busy
    await verify(later, node.url)
    expect((await node.stop()).code).toBe(0)
    const dir = folderWithKeyOf(dataDir)
    await done(["restore", file, "--data-dir", dir])
    expect(await done(["check", "--data-dir", dir])).toContain(": ok")
    const back = await start({ dataDir: dir })
    await verify(all, back.url)
    await use(all, back.url, "e")
    await verify(all, back.url)
    expect((await back.stop()).code).toBe(0)
    await spoil(url)
    const checked = await command(["check", "--json"], env)
    expect(checked.code).toBe(1)
    for (
      const problem of [
        /unreadable state/,
        /its blob \S+ is missing/,
        /the kind \S+ does not exist/
      ]
    ) {
      expect(checked.output).toMatch(problem)
    }
  })

  it("are rejected if anything is missing or changed, and nothing is restored", async () => {
    const plain = gunzipSync(readFileSync(archive))
    const zipped = readFileSync(archive)
    const text = plain.toString("latin1")
    const lastLine = text.lastIndexOf("\n", text.length - 2) + 1
    const flipped = (at: number) => {
      const bytes = Buffer.from(plain)
      bytes[at] = (bytes[at] ?? 0) ^ 1
      return bytes
    }
    const spoiled: Readonly<Record<string, Buffer>> = {
      "no end": plain.subarray(0, lastLine),
      "zipped and cut": zipped.subarray(0, zipped.length - 9),
      "bit of a blob": flipped(text.indexOf("\"bytes\"") + 1_000),
      "bit of an actor": flipped(text.indexOf("\"state\"") + 20)
    }
    for (const [name, bytes] of Object.entries(spoiled)) {
      const file = join(archives, "spoiled")
      writeFileSync(file, bytes)
      const folder = temporaryFolder()
      const refused = await command(["restore", file, "--data-dir", folder])
      expect(refused.code, name).toBe(1)
      expect(refused.output, name).toContain(`${file} cannot be used, `)
      expect(readdirSync(folder), name).toEqual([])
    }
  })

  it(
    "are not served after a killed restore, and can be restored again",
    async () => {
      const { url } = await natsServer()
      const folder = folderWithKeyOf(dataDir)
      const SECRET_KEY_FILE = join(folder, "secret-key")
      const cluster = { NATS_URL: url, DATA_DIR: temporaryFolder(), SECRET_KEY_FILE }
      const places = [{ DATA_DIR: folder }, cluster]
      for (const env of places) {
        const args = [binary, "restore", archive]
        const failpoint = { RESTANTE_FAILPOINT: "committed:mailbox:1" }
        const killed = new Running(process.execPath, args, { ...env, ...failpoint })
        expect(await killed.end()).toMatchObject({ signal: "SIGKILL" })
        const refused = await command(["serve"], {
          ...env,
          PORT: "0",
          BASE_URL: "http://post.test"
        })
        expect(refused.code).toBe(74)
        expect(refused.output).toContain("restored in part")
      }
      for (const env of places) {
        await eventually(120_000, "restored again", async () => {
          const ended = await command(["restore", archive], env)
          if (ended.output.includes("another process is restoring it")) return undefined
          expect(ended, ended.output).toMatchObject({ code: 0 })
          return true
        }, 1_000)
        const service = await start({ env, dataDir: env.DATA_DIR })
        await verify(history, service.url)
        expectStatus(await postXml(service.url, "/mailboxes", "<mailbox/>", asAdmin), 201)
        await service.stop()
      }
    }
  )
})
