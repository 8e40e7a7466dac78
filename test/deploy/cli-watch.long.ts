/** The built `restante watch`, with a service. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { asAdmin, expectStatus, type Mailbox, notification, openMailbox, parseXml, postXml,
  send } from "../e2e/client.ts"
import { eventually, publicUrl, type Service, start } from "../e2e/process.ts"
import { endCommands, type Environment, fileWith, type Run, run, withinMs } from "./cli-harness.ts"

let service: Service

const begin = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Run =>
  run(args, { BASE_URL: service.url, ...env }, input)

beforeAll(async () => {
  service = await start()
})

afterAll(endCommands)

describe("restante watch", () => {
  let alice: Mailbox
  beforeAll(async () => {
    alice = await openMailbox(service.url, "alice")
  })

  const deposit = async (to: Mailbox, description: string) => {
    expectStatus(await postXml(service.url, to.path, notification(description)), 202)
  }
  const linesOf = ({ output }: Run): ReadonlyArray<string> => output.stdout.split("\n").slice(0, -1)
  const lines = (one: Run, count: number) =>
    eventually(withinMs, `${count} lines`, () => linesOf(one).length >= count || undefined)

  it("prints present and new notifications once each, over restarts of the service", async () => {
    await deposit(alice, "first")
    const watching = begin(["watch", publicUrl + alice.path])
    await lines(watching, 1)
    await deposit(alice, "second")
    await lines(watching, 2)
    const { dataDir, port } = service
    await service.kill()
    await eventually(
      withinMs,
      "it reports the lost connection",
      () => watching.output.stderr !== "" || undefined
    )
    service = await start({ dataDir, env: { PORT: String(port) } })
    await deposit(alice, "third")
    await lines(watching, 3)
    watching.child.kill("SIGTERM")
    expect((await watching.ended).status).toBe(0)
    expect(linesOf(watching).map((line) => line.split("\t").slice(1))).toEqual(
      ["first", "second", "third"].map((name) => [name, `http://sender.test/${name}`])
    )
    expect(watching.output.stderr).toBe(
      "The service does not respond; retrying.\nThe service responds again.\n"
    )
  })

  it.each(["SIGINT", "SIGTERM"] as const)("ends with 0 on %s, without a token", async (signal) => {
    const nobody = { RESTANTE_TOKEN: "" }
    const shared = begin(["watch", "-"], nobody, `${publicUrl}${alice.shared}\n`)
    const named = begin(["watch", "alice", "--password-file", fileWith(alice.password)], nobody)
    for (const one of [shared, named]) {
      await lines(one, 1)
      one.child.kill(signal)
      expect((await one.ended).status).toBe(0)
    }
  })

  it("finds the service by the URI, and sends it no token of another service", async () => {
    const unset = { BASE_URL: "" }
    const shared = begin(["watch", "-"], unset, service.url + alice.shared)
    await lines(shared, 1)
    shared.child.kill("SIGTERM")
    expect((await shared.ended).status).toBe(0)
    const stranger = await begin(["watch", service.url + alice.path], unset).ended
    expect(stranger).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("--password-file")
    })
  })

  it("prints from a time on, without text that controls a terminal", async () => {
    const bob = await openMailbox(service.url, "bob")
    await deposit(bob, "early")
    const listing = await send(service.url, bob.path, { headers: asAdmin })
    const since = parseXml(listing.text).attributes["time"] ?? ""
    const item =
      "<item><description>a\nb\tc\u202ed\u009b31m</description><url>http://a/</url></item>"
    expectStatus(await postXml(service.url, bob.path, `<notification>${item}</notification>`), 202)
    const watching = begin(["watch", "bob", "--since", since])
    await lines(watching, 1)
    expectStatus(await send(service.url, bob.path, { method: "DELETE", headers: asAdmin }), 204)
    const ended = await watching.ended
    expect(ended).toMatchObject({ status: 1, stderr: expect.stringContaining("deleted") })
    expect(ended.stdout).toMatch(/^\S+Z\ta b c d 31m\thttp:\/\/a\/\n$/)
    expect(await begin(["watch", "bob"]).ended).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("deleted")
    })
  })

  it("reports that notifications since then were removed, as read does", async () => {
    const carol = await openMailbox(service.url, "carol")
    const first = await send(service.url, carol.path, { headers: asAdmin })
    const since: Array<string> = [parseXml(first.text).attributes["time"] ?? ""]
    for (const name of ["one", "two", "three"]) {
      await deposit(carol, name)
      const listing = parseXml((await send(service.url, carol.path, { headers: asAdmin })).text)
      since.push(listing.attributes["time"] ?? "")
    }
    const listed = await begin(["read", "carol", "--json"]).ended
    const hrefs = listed.stdout.trim().split("\n").map((line) =>
      String((JSON.parse(line) as { readonly href: unknown }).href)
    )
    for (const href of hrefs.slice(0, 2)) {
      const { pathname } = new URL(href)
      expectStatus(await send(service.url, pathname, { method: "DELETE", headers: asAdmin }), 204)
    }
    const notice = "Notifications since that time were removed; the others follow.\n"
    const watching = begin(["watch", "carol", "--since", since[1] ?? ""])
    await lines(watching, 1)
    watching.child.kill("SIGTERM")
    expect((await watching.ended).stderr).toBe(notice)
    const read = await begin(["read", "carol", "--since", since[1] ?? ""]).ended
    expect(read).toMatchObject({ status: 0, stderr: notice })
    expect(read.stdout).toContain("three")
    // Right before what is kept, nothing is lost.
    const kept = await begin(["read", "carol", "--since", since[2] ?? ""]).ended
    expect(kept).toMatchObject({ status: 0, stderr: "", stdout: read.stdout })
  })

  it("runs a command for each, which no text of a stranger can extend", async () => {
    const dave = await openMailbox(service.url, "dave")
    const names = ["$(echo hacked)", "`id`;exit", "last"]
    for (const name of names) {
      const item = `<item><description>${name}</description><url>http://sender.test/</url></item>`
      expectStatus(
        await postXml(service.url, dave.path, `<notification>${item}</notification>`),
        202
      )
    }
    const command =
      "printf '%s|' \"$RESTANTE_DESCRIPTION\"; cat; [ \"$RESTANTE_DESCRIPTION\" = last ]"
    const watching = begin(["watch", "dave", "--exec", command])
    await lines(watching, 3)
    await eventually(
      withinMs,
      "it reports",
      () => watching.output.stderr.includes("1 for") || undefined
    )
    watching.child.kill("SIGTERM")
    expect((await watching.ended).status).toBe(0)
    const printed = linesOf(watching).map((line) => {
      const [description, document = ""] = line.split("|")
      // The command got the document that `watch --json` prints.
      const { item, ...found } = JSON.parse(document)
      expect(item).toEqual({ description: found.description, url: found.url })
      return [description, found.description]
    })
    expect(printed).toEqual(names.map((name) => [name, name]))
    expect(watching.output.stderr.trim().split("\n")).toEqual([
      expect.stringMatching(/^restante: the command ended with 1 for http.*\/1-/),
      expect.stringMatching(/^restante: the command ended with 1 for http.*\/2-/)
    ])
  })

  it("runs it for a description that is too long for a variable", async () => {
    const erin = await openMailbox(service.url, "erin")
    await deposit(erin, "a".repeat(1_000))
    const item = `<item><description>${"é".repeat(70_000)}</description><url>u:1</url></item>`
    expectStatus(await postXml(service.url, erin.path, `<notification>${item}</notification>`), 202)
    const watching = begin(["watch", "erin", "--exec", "wc -m; echo ${#RESTANTE_DESCRIPTION}"])
    await lines(watching, 4)
    watching.child.kill("SIGTERM")
    await watching.ended
    expect(linesOf(watching).map(Number)[1]).toBe(1_000)
    expect(linesOf(watching).map(Number)[3]).toBeGreaterThanOrEqual(32_768)
    expect(watching.output.stderr).toBe("")
  })

  it("reports a wrong secret", async () => {
    const ran = await begin(["watch", "-"], {}, `${publicUrl}/mailboxes/alice~wrong`).ended
    expect(ran).toMatchObject({ status: 1, stderr: expect.stringMatching(/no such mailbox/) })
  })

  it.each<[string, number, ReadonlyArray<string>, Environment, RegExp]>([
    ["no such mailbox", 1, ["nobody"], {}, /no such mailbox/],
    ["no password", 1, ["alice"], { RESTANTE_TOKEN: "" }, /--password-file/],
    ["a wrong password", 1, ["alice", "--password-file", fileWith("wrong")], {}, /--password-file/],
    ["no time", 1, ["alice", "--since", "yesterday"], {}, /RFC 3339/],
    [
      "another mailbox's time",
      1,
      ["alice", "--since", "2026-01-01T00:00:00.000000000000999Z"],
      {},
      /has not given out this position/
    ],
    ["no mailbox", 2, [`${publicUrl}/content/a`], {}, /the name or the URI of a mailbox/],
    ["no URI", 2, ["What?"], {}, /the name or the URI of a mailbox/],
    ["an empty input", 2, ["-"], {}, /standard input has no secret/],
    ["two secrets of one input", 2, ["-", "--token-file", "-"], {}, /standard input \(-\) is read/],
    ["the same", 2, ["-", "--password-file", "-"], {}, /standard input \(-\) is read once/],
    ["no service", 75, ["alice"], { BASE_URL: "http://127.0.0.1:9" }, /127\.0\.0\.1:9/]
  ])("reports the fault: %s", async (_, status, args, env, message) => {
    const ran = await begin(["watch", ...args], env).ended
    expect(ran.status).toBe(status)
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr.trim().split("\n")).toHaveLength(1)
  })
})
