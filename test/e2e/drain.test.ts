/** Graceful shutdown, and failed starts. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync,
  writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { basic, expectStatus, listMailbox, notification, openMailbox, pathOf, postXml, send,
  sha256 } from "./client.ts"
import { cleanUp, command, eventually, launch, pause, start, temporaryFolder,
  within } from "./process.ts"
import { head, openRaw, statusesOf } from "./raw.ts"

afterAll(cleanUp)

const reader = (password: string) => ({ authorization: basic("reader", password) })

describe("SIGTERM", () => {
  it("completes requests in progress, and exits with 0", async () => {
    const dataDir = temporaryFolder()
    const service = await start({ dataDir })
    const mailbox = await openMailbox(service.url, "alice")
    const deposit = notification("while-stopping")
    // Two requests whose bodies are half sent when the signal arrives.
    const slow = await openRaw(service.port)
    slow.socket.write(
      head(
        `POST ${mailbox.path} HTTP/1.1`,
        "Host: a",
        "Content-Type: application/xml",
        `Content-Length: ${deposit.length}`
      ) + deposit.slice(0, 20)
    )
    const upload = await openRaw(service.port)
    const body = "x".repeat(100_000)
    upload.socket.write(
      head("POST /content HTTP/1.1", "Host: a", `Content-Length: ${body.length}`) +
        body.slice(0, 50_000)
    )
    await pause(100)
    const stopping = service.stop()
    await pause(200)
    slow.socket.write(deposit.slice(20))
    upload.socket.write(body.slice(50_000))
    const ended = await stopping
    expect(ended).toEqual({ code: 0, signal: null })
    expect(statusesOf(slow.received())).toEqual([202])
    expect(statusesOf(upload.received())).toEqual([202])
    const again = await start({ dataDir })
    const listed = await listMailbox(again.url, mailbox)
    expect(listed.map(({ description }) => description)).toEqual(["while-stopping"])
    const [, location = ""] = /\r\nlocation: (\S+)/i.exec(upload.received()) ?? []
    const content = expectStatus(await send(again.url, pathOf(location)), 200)
    expect(sha256(content.bytes)).toBe(sha256(Buffer.from(body)))
    await again.kill()
  })

  it("accepts no new connection while it drains, and ends in time", async () => {
    const service = await start({ env: { DRAIN_TIMEOUT: "1500ms" } })
    const stuck = await openRaw(service.port)
    stuck.socket.write(head("POST /content HTTP/1.1", "Host: a", "Content-Length: 100") + "x")
    await pause(100)
    const stopping = service.stop()
    await eventually(1_000, "nobody listens", () =>
      openRaw(service.port).then(({ socket }) => {
        socket.destroy()
        return undefined
      }, () => true))
    expect((await stopping).code).toBe(0)
  })

  it("ends event streams and long polls", async () => {
    const service = await start()
    const mailbox = await openMailbox(service.url, "alice")
    const headers = reader(mailbox.password)
    const poll = send(service.url, `${mailbox.path}?since=2100-01-01T00:00:00Z`, {
      headers: { ...headers, prefer: "wait=60" }
    })
    const streamed = await fetch(`${service.url}${mailbox.path}`, {
      headers: { ...headers, accept: "text/event-stream" }
    })
    expect(streamed.headers.get("content-type")).toContain("text/event-stream")
    const stream = streamed.text()
    await pause(200)
    expect((await service.stop()).code).toBe(0)
    expectStatus(await poll, 200)
    await within(1_000, "the stream ends", stream.catch(() => ""))
  })

  it("stops in the same way on SIGINT, and at once when idle", async () => {
    const service = await start()
    service.child.kill("SIGINT")
    expect((await service.end()).code).toBe(0)
    expect(service.output).not.toMatch(/error|exception|at .*:\d+:\d+/i)
  })

  it("loses nothing under load", async () => {
    const dataDir = temporaryFolder()
    const service = await start({ dataDir })
    const mailbox = await openMailbox(service.url, "alice")
    const accepted = new Set<string>()
    const clients = Array.from({ length: 8 }, async (_, at) => {
      for (let n = 0; !service.isOver; n += 1) {
        const text = `c${at}n${n}`
        const answer = await postXml(service.url, mailbox.path, notification(text)).catch(() =>
          undefined
        )
        if (answer === undefined) return
        // The stopping service may refuse requests; other failures are faults.
        if (answer.status === 202) accepted.add(text)
        else expectStatus(answer, 503)
      }
    })
    await eventually(5_000, "some deposits", () => accepted.size > 20 ? true : undefined, 1)
    expect((await service.stop()).code).toBe(0)
    await Promise.all(clients)
    const again = await start({ dataDir })
    const there = new Set((await listMailbox(again.url, mailbox)).map((one) => one.description))
    await again.kill()
    expect([...accepted].filter((text) => !there.has(text))).toEqual([])
  })
})

describe("a failed start", () => {
  it("names the process that holds the folder", async () => {
    const holder = await start()
    const second = launch({ dataDir: holder.dataDir })
    expect((await second.end()).code).toBe(75)
    expect(second.output).toContain(holder.dataDir)
    expect(second.output).toContain(String(holder.pid))
    const checked = await command(["check", "--data-dir", holder.dataDir])
    expect(checked.code).toBe(75)
    expectStatus(await send(holder.url, "/readyz"), 200)
    await holder.kill()
    const third = await start({ dataDir: holder.dataDir })
    await third.kill()
  })

  it("reports that the port is in use", async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    const address = other.address()
    if (typeof address !== "object" || address === null) throw new Error("no port")
    const refused = launch({ env: { PORT: String(address.port) } })
    expect((await refused.end()).code).toBe(75)
    expect(refused.output).toContain(String(address.port))
    expect(refused.output).toContain("in use")
    expect(refused.output).toContain("set another PORT or HOST")
    await new Promise((resolve) => other.close(resolve))
  })

  it.each([
    ["PORT", "http", "port"],
    ["BASE_URL", "ftp://x", "baseUrl"],
    ["CONTENT_BASE_URL", "http://post.test:81", "content.baseUrl"],
    ["LOG_LEVEL", "loud", "log.level"],
    ["CONTENT_BYTES_MAX", "-1", "content.bytesMax"],
    ["DRAIN_TIMEOUT", "soon", "limits.drainTimeout"]
  ])("names the setting %s when it is wrong", async (variable, value, setting) => {
    const refused = launch({ env: { [variable]: value } })
    expect((await refused.end()).code).toBe(78)
    expect(refused.output).toContain(setting)
    expect(refused.output).toContain(variable)
    expect(refused.output).toContain(value)
    expect(readdirSync(refused.dataDir)).toEqual([])
  })

  it("reports that the folder is unusable", async () => {
    const file = join(temporaryFolder(), "file")
    writeFileSync(file, "")
    const refused = launch({ dataDir: join(file, "data") })
    expect([74, 75, 78]).toContain((await refused.end()).code)
    expect(refused.output).toContain(file)
    expect(refused.output).not.toMatch(/ at .*:\d+:\d+/)
  })
})

describe("a corrupted store", () => {
  const filled = async (): Promise<string> => {
    const service = await start()
    const mailbox = await openMailbox(service.url, "alice")
    for (let n = 0; n < 200; n += 1) {
      expectStatus(await postXml(service.url, mailbox.path, notification(`n${n}`)), 202)
    }
    // The service counts acknowledged data on the disk once a second.
    await pause(1_500)
    await service.kill()
    return service.dataDir
  }

  /** RocksDB's newest file with a name like this. */
  const newest = (dataDir: string, pattern: RegExp): string => {
    const names = readdirSync(join(dataDir, "store")).filter((name) => pattern.test(name)).sort()
    return join(dataDir, "store", names.at(-1) ?? "")
  }

  const corruptions: ReadonlyArray<[string, (dataDir: string) => void]> = [
    ["a log that was cut", (dataDir) => {
      const log = newest(dataDir, /\.log$/)
      truncateSync(log, Math.floor(readFileSync(log).length / 2))
    }],
    ["a flipped bit in the log", (dataDir) => {
      const log = newest(dataDir, /\.log$/)
      const bytes = readFileSync(log)
      const at = Math.floor(bytes.length / 2)
      bytes[at] = (bytes[at] ?? 0) ^ 1
      writeFileSync(log, bytes)
    }],
    ["a log that is gone", (dataDir) => rmSync(newest(dataDir, /\.log$/))],
    ["a manifest that is cut", (dataDir) => truncateSync(newest(dataDir, /^MANIFEST/), 10)],
    ["a CURRENT of noise", (dataDir) => writeFileSync(join(dataDir, "store/CURRENT"), "noise")]
  ]

  it("ends the start with 74 and a message, and is valid after a repair", async () => {
    const whole = await filled()
    for (const [name, corruption] of corruptions) {
      const dataDir = join(temporaryFolder(), "copy")
      mkdirSync(dataDir)
      cpSync(whole, dataDir, { recursive: true })
      corruption(dataDir)
      const refused = launch({ dataDir })
      expect((await refused.end()).code, `${name}: ${refused.output}`).toBe(74)
      expect(refused.output, name).toContain(`${dataDir} is corrupted`)
      const checked = await command(["check", "--data-dir", dataDir])
      expect(checked.code, `${name}: ${checked.output}`).toBe(1)
    }
    const service = await start({ dataDir: whole })
    await service.stop()
    const checked = await command(["check", "--data-dir", whole])
    expect(checked.code, checked.output).toBe(0)
  })
})

describe("npm start", () => {
  it("serves in the same process", async () => {
    const script = fileURLToPath(new URL("../../deploy/start.mjs", import.meta.url))
    const service = await start({ script: [script] })
    expectStatus(await send(service.url, "/livez"), 200)
    expect((await service.stop()).code).toBe(0)
  })
})
