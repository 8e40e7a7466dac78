/** The built `restante send`, with a service and receivers. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { asAdmin, childOf, openMailbox, parseXml, pathOf, send } from "../e2e/client.ts"
import { adminToken, eventually, publicUrl, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { receiver } from "../e2e/receivers.ts"
import { bodies, bodyAt, endCommands, type Environment, fileWith, type Ran, run, serviceEnv,
  startOther, uriPattern, withFake, withinMs } from "./cli-harness.ts"

let service: Service

let other: string

const restante = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ...env }, input).ended

beforeAll(async () => {
  other = await startOther()
  service = await start({ env: serviceEnv })
})

afterAll(endCommands)

const itemOf = (body: string, name: string): string =>
  childOf(childOf(parseXml(body), "item"), name).text

describe("restante send", () => {
  const described = ["--description", "<Über> & out"]

  it("queues a notification and prints its URI alone", async () => {
    const to = ["--to", `${other}/one`, "--to", `${other}/two`]
    const url = ["--url", "http://a.test/message"]
    const ran = await restante(["send", ...to, ...described, ...url, "--from"])
    expect(ran).toMatchObject({ status: 0, stderr: "", stdout: expect.stringMatching(uriPattern) })
    for (const path of ["/one", "/two"]) {
      const body = await eventually(withinMs, "it is relayed", () => bodies.get(path)?.[0])
      expect(itemOf(body, "description")).toBe("<Über> & out")
      expect(itemOf(body, "url")).toBe("http://a.test/message")
      expect(itemOf(body, "from")).toBe(`${publicUrl}/outgoing/admin`)
    }
  })

  it("publishes a file of any size, by its type, with a password", async () => {
    const file = join(temporaryFolder(), "minutes.pdf")
    const bytes = Buffer.alloc(1024 * 1024, "minutes ")
    writeFileSync(file, bytes)
    const args = ["send", "--to", `${other}/file`, ...described, "--content", file, "--wait"]
    const ran = await restante([...args, "--generate-password"])
    expect(ran).toMatchObject({ status: 0, stdout: expect.stringMatching(uriPattern) })
    expect(ran.stderr).toMatch(/^1 of 1 delivered$/m)
    const path = pathOf(itemOf(bodyAt("/file"), "url"))
    expect((await send(service.url, path)).status).toBe(401)
    const password = itemOf(bodyAt("/file"), "password")
    const answer = await send(service.url, path, { headers: { "message-password": password } })
    expect(answer.headers.get("content-type")).toBe("application/pdf")
    expect(answer.bytes.equals(bytes)).toBe(true)
  })

  it("publishes its standard input with the type of the flag", async () => {
    const args = ["send", "--to", `${other}/input`, ...described, "--content", "-", "--wait"]
    const ran = await restante([...args, "--type", "text/x-poem"], {}, "a poem\n")
    expect(ran.status).toBe(0)
    expect(bodyAt("/input")).not.toContain("password")
    const answer = await send(service.url, pathOf(itemOf(bodyAt("/input"), "url")))
    expect([answer.headers.get("content-type"), answer.text]).toEqual(["text/x-poem", "a poem\n"])
  })

  it("sends a description alone as a note, whose content is the description", async () => {
    const ran = await restante(["send", "--to", `${other}/note`, ...described, "--wait"])
    expect(ran).toMatchObject({ status: 0, stdout: expect.stringMatching(uriPattern) })
    expect(itemOf(bodyAt("/note"), "description")).toBe("<Über> & out")
    const answer = await send(service.url, pathOf(itemOf(bodyAt("/note"), "url")))
    expect([answer.headers.get("content-type"), answer.text])
      .toEqual(["text/plain; charset=utf-8", "<Über> & out"])
  })

  it("sends a priority, tags and what to open by a click", async () => {
    const labels = ["--priority", "high", "--tags", "backup, disk", "--click", "http://a.test/d"]
    const args = ["send", "--to", `${other}/labels`, ...described, ...labels, "--wait"]
    expect((await restante(args)).status).toBe(0)
    const items = ["priority", "tags", "click"].map((name) => itemOf(bodyAt("/labels"), name))
    expect(items).toEqual(["4", "backup,disk", "http://a.test/d"])
  })

  it("sends to a mailbox of the service by its name", async () => {
    const { path } = await openMailbox(service.url, "named")
    const args = ["send", "--to", "named", ...described, "--url", "http://a.test/", "--wait"]
    expect((await restante(args)).status).toBe(0)
    const listing = await send(service.url, path, { headers: asAdmin })
    expect(listing.text).toContain("<url>http://a.test/</url>")
  })

  it("waits until all have it", async () => {
    const args = ["send", "--to", `${other}/503-1/x`, "--to", `${other}/fine`, ...described]
    const ran = await restante([...args, "--url", "http://a.test/", "--wait"])
    expect(ran.status).toBe(0)
    expect(ran.stderr.trim().split("\n").at(-1)).toBe("2 of 2 delivered")
    expect(ran.stderr).not.toContain("\x1b")
  })

  it("exits with 1 when a recipient failed, and names it", async () => {
    const args = ["send", "--to", `${other}/404/x`, "--to", `${other}/fine`, ...described]
    const ran = await restante([...args, "--url", "http://a.test/", "--wait"])
    expect(ran).toMatchObject({ status: 1, stdout: expect.stringMatching(uriPattern) })
    expect(ran.stderr).toContain("1 of 2 delivered, 1 failed\n")
    expect(ran.stderr).toMatch(/not delivered to 1 recipient of 2:\n.*\/404\/x: .*404/)
  })

  it("exits with 1 when it is stopped before the end", async () => {
    const hanging = await receiver(() => {})
    const args = ["send", "--to", hanging, ...described, "--url", "http://a.test/", "--wait"]
    const { child, ended, output } = run(args, { BASE_URL: service.url })
    await eventually(withinMs, "it waits", () => output.stderr.includes("waiting") || undefined)
    child.kill("SIGINT")
    expect((await ended).status).toBe(1)
  })

  const complete = ["--to", "http://a.test/", "--description", "d", "--url", "http://a.test/"]

  it.each<[string, number, ReadonlyArray<string>, Environment, RegExp]>([
    ["a password of no message", 2, [...complete.slice(0, 4), "--generate-password"], {}, /--url/],
    ["two messages", 2, [...complete, "--content", "-"], {}, /--url or --content/],
    ["a type of no content", 2, [...complete, "--type", "text/plain"], {}, /--type/],
    ["a generated password of no content", 2, [...complete, "--generate-password"], {}, /gen/],
    ["no recipient", 2, complete.slice(2), {}, /to/],
    ["no token", 2, complete, { RESTANTE_TOKEN: "" }, /RESTANTE_TOKEN/],
    ["an impossible token", 2, [...complete, "--token-file", fileWith("a b")], {}, /visible ASCII/],
    ["a wrong token", 1, [...complete, "--token-file", fileWith("wrong\n")], {}, /401/],
    ["no file of a token", 1, [...complete, "--token-file", "/no/such"], {}, /\/no\/such/],
    ["an empty file", 2, [...complete, "--token-file", fileWith("")], {}, /has no secret/],
    ["a token that all users see", 2, [...complete, "--token", "t"], {}, /use --token-file/],
    ["a password that all users see", 2, [...complete, "--password=t"], {}, /--password-file/],
    [
      "two secrets of standard input",
      2,
      [...complete, "--token-file", "-", "--password-file", "-"],
      {},
      /is read once/
    ],
    ["no service", 75, complete, { BASE_URL: "http://127.0.0.1:9" }, /127\.0\.0\.1:9/],
    ["no such file", 1, [...complete.slice(0, 4), "--content", "/no/such"], {}, /\/no\/such/],
    ["a folder", 1, [...complete.slice(0, 4), "--content", "/"], {}, /folder/],
    ["no URI", 1, ["--to", "mailto:a@b.test", ...complete.slice(2)], {}, /to number 1/]
  ])("reports the fault: %s", async (_, status, args, env, message) => {
    const ran = await restante(["send", ...args], env)
    expect(ran.status).toBe(status)
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr).not.toContain(adminToken)
  })

  it("takes a token and a password from files and standard input", async () => {
    const url = ["--to", `${other}/secrets`, ...described, "--url", "http://a.test/"]
    const password = "a-password-of-24-chars--"
    const files = ["--token-file", "-", "--password-file", fileWith(`${password}\n`), "--wait"]
    const ran = await restante(["send", ...url, ...files], { RESTANTE_TOKEN: "" }, adminToken)
    expect([ran.status, ran.stderr]).toEqual([0, expect.stringContaining("1 of 1 delivered")])
    expect(itemOf(bodyAt("/secrets"), "password")).toBe(password)
    // The file replaces the environment.
    const wrong = { RESTANTE_TOKEN: "wrong", ADMIN_TOKEN: "wrong" }
    const token = ["--token-file", fileWith(adminToken)]
    expect((await restante(["send", ...url, ...token], wrong)).status).toBe(0)
  })

  it("prefers RESTANTE_TOKEN, and takes ADMIN_TOKEN", async () => {
    const url = ["--to", `${other}/token`, ...described, "--url", "http://a.test/"]
    const only = { RESTANTE_TOKEN: "", ADMIN_TOKEN: adminToken }
    expect((await restante(["send", ...url], only)).status).toBe(0)
    expect((await restante(["send", ...url], { ...only, RESTANTE_TOKEN: "wrong" })).status).toBe(1)
  })

  /** Publishes, and then gets this response to its notification and to the removal. */
  const sendTo = (status: number | undefined, removal = 204) => {
    const args = ["send", "--to", "http://a.test/", "--description", "d", "--content", "-"]
    return withFake(({ method, url }, response) => {
      if (url === "/content") {
        response.setHeader("location", `${publicUrl}/content/a`)
        response.setHeader("link", `<${publicUrl}/content/a~secret>; rel="edit"`)
        response.writeHead(202).end()
      } else if (method === "DELETE") response.writeHead(removal).end()
      else if (status === undefined) response.destroy()
      else response.writeHead(status).end()
    }, args)
  }

  const stays = `the content stays at ${publicUrl}/content/a`

  const deletion = `to delete it, send DELETE to ${publicUrl}/content/a~secret\n`

  it.each([400, 403, 413, 422, 425, 429])(
    "removes the content when the notification is refused: %s",
    async (refusal) => {
      const { requests, status, stderr } = await sendTo(refusal)
      expect(status).toBe(refusal === 429 ? 75 : 1)
      expect(requests.at(-1)).toBe("DELETE /content/a~secret")
      expect(stderr).not.toContain("content")
    }
  )

  it.each([408, 500, 502, 503, 504, undefined])(
    "keeps the content when the notification may have been accepted: %s",
    async (unknown) => {
      const { requests, status, stderr } = await sendTo(unknown)
      expect(status).toBe(unknown === 408 || unknown === 500 ? 1 : 75)
      expect(requests.at(-1)).toBe("POST /outgoing/bob")
      expect(stderr).toContain("the notification may have been accepted")
      expect(stderr).toContain("restante outbox")
      expect(stderr).toContain(stays)
      expect(stderr).toContain(deletion)
    }
  )

  it("says where the content is when it cannot be removed", async () => {
    const { status, stderr } = await sendTo(422, 503)
    expect(status).toBe(1)
    expect(stderr).toContain(stays)
    expect(stderr).toContain(deletion)
    expect(stderr).not.toContain("accepted")
  })
})
