/** Sends every request of docs/subjects.md, and compares the answers. */
import { connect, headers, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { shardOf } from "../../../runtime/actor/address.ts"
import { asAdmin, expectStatus, postXml, send } from "../../e2e/client.ts"
import { cleanUp, eventually, keyFile, type Service, start } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

const docs = join(import.meta.dirname, "../../../docs")

const page = readFileSync(join(docs, "subjects.md"), "utf8")

const TIMEOUT_MS = 10_000

interface Shown {
  readonly subject: string
  readonly message: string
  readonly answer: string
  readonly isSigned: boolean
}

/** The requests of all transcripts, in order; a command that is no request is a failure. */
const shown = [...page.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block = ""]) => {
  const lines = block.trimEnd().split("\n")
  return lines.flatMap((line, at): Array<Shown> => {
    if (!line.startsWith("$ ")) return []
    const [, command, subject, message] = /^\$ (ask|nats req --raw) (\S+) '([^']*)'$/.exec(line) ??
      []
    const answer = lines[at + 1]
    if (subject === undefined || message === undefined || answer === undefined) {
      throw new Error(`not a request with its answer: ${line}`)
    }
    return [{ subject, message, answer, isSigned: command === "ask" }]
  })
})

/** The page's functions for a shell. */
const [, shell = ""] = /^```sh\n(.*?)^```$/ms.exec(page) ?? []

/** The header of a message, as a reader of the page makes it, with the key in this file. */
const signatureOf = (subject: string, message: string, key = secretKey): MsgHdrs => {
  const script = `${shell}\nsign "$1" "$2"`
  const signing = spawnSync("bash", ["-c", script, "bash", subject, message], {
    cwd: dirname(key),
    encoding: "utf8"
  })
  const [name = "", value = ""] = signing.stdout.trim().split(": ")
  expect([name, signing.stderr]).toEqual(["Restante-Auth", ""])
  const signature = headers()
  signature.set(name, value)
  return signature
}

/** Times differ: each is as good as another, but there must be one. */
const timeless = (answer: string): unknown =>
  JSON.parse(answer.replace(/\b\d{13}\b/g, "\"a time\""))

let nats: NatsServer

let secretKey: string

let service: Service

let nc: NatsConnection

beforeAll(async () => {
  nats = await startServer()
  secretKey = keyFile("# The key of the cluster", Buffer.alloc(32, "subjects").toString("base64"))
  const env = { NATS_URL: nats.url, CLUSTER_BUCKETS: "1", SECRET_KEY_FILE: secretKey }
  service = await start({ env })
  nc = await connect({ servers: [nats.url] })
  const alice = "<mailbox><name>alice</name></mailbox>"
  expectStatus(await postXml(service.url, "/mailboxes", alice, asAdmin), 201)
})

afterAll(async () => {
  await nc?.close()
  cleanUp()
  await nats?.close()
})

const ask = async (subject: string, message: string, isSigned = true): Promise<string> => {
  const signature = isSigned ? { headers: signatureOf(subject, message) } : {}
  return (await nc.request(subject, message, { timeout: TIMEOUT_MS, ...signature })).string()
}

/** The answer of a node that has held the shard for long enough. */
const settledAnswer = ({ isSigned, message, subject }: Shown): Promise<string> =>
  eventually(TIMEOUT_MS, `${subject} is answered`, async () => {
    const answer = await ask(subject, message, isSigned)
    return answer.includes("\"NoOwner\"") ? undefined : answer
  })

it("is answered as the page shows", async () => {
  expect(shown.length).toBeGreaterThan(10)
  for (const one of shown) {
    const { answer, message, subject } = one
    const answered = await settledAnswer(one)
    expect([subject, message, timeless(answered)]).toEqual([subject, message, timeless(answer)])
  }
})

it("continues over HTTP what began over NATS, and reports each change", async () => {
  const hints: Array<string> = []
  nc.subscribe("restante.changes", {
    callback: (_, message) => {
      hints.push(...message.string().split("\n").filter((line) => line.includes("mailbox/alice")))
    }
  })
  await nc.flush()
  const session = expectStatus(await send(service.url, "/sessions/by-hand"), 200)
  expect(session.text).toContain("What is your quest?")
  const item = "<description>Two</description><url>http://example.org/two</url>"
  const document = `<notification><item>${item}</item></notification>`
  expectStatus(await postXml(service.url, "/mailboxes/alice", document), 202)
  await expect.poll(() => hints, { timeout: TIMEOUT_MS }).toEqual(["mailbox/alice 2"])
})

it("adds a token for whoever has the key, and for nobody else", async () => {
  const subject = `restante.account.${shardOf({ kind: "account", id: "admin" })}.admin`
  const message = JSON.stringify({
    _tag: "AddToken",
    caller: { account: "admin", admin: true },
    tokenId: "by-hand",
    tokenHash: createHash("sha256").update("of a stranger's choice").digest("base64url")
  })
  const tokens = async (): Promise<string> => {
    const headers = { ...asAdmin, accept: "application/json" }
    const { text } = expectStatus(
      await send(service.url, "/accounts/admin/tokens", { headers }),
      200
    )
    // The last use may be recorded between two answers.
    return text.replace(/,?"used":"[^"]*"/g, "")
  }
  const before = await tokens()
  const otherKey = keyFile(Buffer.alloc(32, "another key").toString("base64"))
  for (const headers of [undefined, signatureOf(subject, message, otherKey)]) {
    const options = { timeout: TIMEOUT_MS, ...headers === undefined ? {} : { headers } }
    const answer = JSON.parse((await nc.request(subject, message, options)).string())
    expect(answer).toMatchObject({ _tag: "Failure", failure: { _tag: "EnvelopeRefused" } })
    expect(await tokens()).toBe(before)
  }
  const added = await settledAnswer({ subject, message, answer: "", isSigned: true })
  expect(JSON.parse(added)).toMatchObject({ _tag: "Reply" })
  expect(before).not.toContain("by-hand")
  expect(await tokens()).toContain("by-hand")
})

it("has no responders while no node serves", () =>
  expect(ask("restante.session.999.by-hand", "{}")).rejects.toThrow("no responders"))

it("finds the shard of an id as the page does", () => {
  const [, code = ""] = /^```js\n(.*?)^```$/ms.exec(page) ?? []
  // The page's own code, which is ours.
  // oxlint-disable-next-line no-new-func
  const found = new Function(`${code}; return shardOf`)() as (id: string) => number
  for (const id of ["alice", "by-hand", "alice=Zm9y", "A_-9", "x"]) {
    expect(found(id)).toBe(shardOf({ kind: "mailbox", id }))
  }
})
