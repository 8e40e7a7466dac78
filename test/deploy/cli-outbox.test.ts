/** The built `restante outbox`, with a service and receivers, and the metrics of deliveries. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { send } from "../e2e/client.ts"
import { adminToken, publicUrl, type Service, start } from "../e2e/process.ts"
import { type Answering, bodies, endCommands, type Environment, fileWith, type Ran, run, serviceEnv,
  startOther, uriPattern, withFake } from "./cli-harness.ts"

let service: Service

let other: string

const restante = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ...env }, input).ended

beforeAll(async () => {
  other = await startOther()
  service = await start({ env: serviceEnv })
})

afterAll(endCommands)

/** Sends to these paths of the receiver; returns the notification's URI. */
const sent = async (...paths: ReadonlyArray<string>): Promise<string> => {
  const to = paths.flatMap((path) => ["--to", other + path])
  const args = ["send", ...to, "--description", "a letter", "--url", "http://a.test/letter"]
  const { status, stderr, stdout } = await restante([...args, "--wait"])
  expect([0, 1], stderr).toContain(status)
  expect(stdout).toMatch(uriPattern)
  return stdout.trim()
}

describe("restante outbox", () => {
  let delivered: string
  let lost: string
  beforeAll(async () => {
    delivered = await sent("/fine")
    lost = await sent("/404-1/lost", "/fine")
  })

  const idOf = (uri: string): string => uri.slice(uri.lastIndexOf("/") + 1)

  it("lists what was sent, newest first, with its counts", async () => {
    const { status, stdout } = await restante(["outbox", "--limit", "2"])
    expect(status).toBe(0)
    const rows = stdout.trimEnd().split("\n").map((row) => row.split("\t"))
    expect(rows.map((row) => row.slice(1))).toEqual([
      ["failed", "success=1 failed=1", lost],
      ["sent", "success=1", delivered]
    ])
    for (const [time] of rows) expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  })

  it("lists those of one status", async () => {
    const { stdout } = await restante(["outbox", "--status", "failed"])
    expect(stdout).toContain(lost)
    expect(stdout).not.toContain("\tsent\t")
  })

  it.each(["by its URI", "by its id"])("shows one %s", async (by) => {
    const which = by === "by its id" ? idOf(lost) : lost
    const { status, stdout } = await restante(["outbox", "show", which])
    expect(status).toBe(0)
    expect(stdout).toMatch(new RegExp(`^.*Z {2}failed {2}${lost}\\nSTATUS `))
    expect(stdout).toMatch(/^failed +1 +\S+Z +- +404 +http:\S+\/404-1\/lost +.*404$/m)
    expect(stdout).toMatch(/^success +1 /m)
  })

  it("shows the attempts of one, with what was sent and what was answered", async () => {
    const { status, stdout } = await restante(["outbox", "attempts", lost])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^\S+Z attempt 1 at http:\S+\/404-1\/lost: 404, \d+ ms; /m)
    expect(stdout).toMatch(/ ms; next: none \(permanent\)\n {2}> accept: /)
    expect(stdout).toMatch(/^ {2}< location: \/stored$/m)
    expect(stdout).toMatch(/^\S+Z attempt 1 at http:\S+\/fine: 20\d, \d+ ms$/m)
    const listed = await restante(["outbox", "attempts", idOf(lost), "--json"])
    const attempts = listed.stdout.trim().split("\n").map((line) => JSON.parse(line))
    expect(attempts.map(({ code, number }) => [code, number])).toEqual(
      expect.arrayContaining([[404, 1]])
    )
    expect(attempts).toHaveLength(2)
  })

  it("retries one, and shows its progress to the end", async () => {
    expect((await restante(["outbox", "retry", lost])).status).toBe(0)
    const result = await restante(["outbox", "show", lost, "--watch"])
    expect(result.status).toBe(0)
    expect(result.stderr).toContain("2 of 2 delivered\n")
    const again = await restante(["outbox", "retry", lost])
    expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining("409") })
    expect(again.stderr).toContain("look at its state, which does not allow this")
    const replay = await restante(["outbox", "retry", lost, "--to", `${other}/fine`])
    expect(replay).toMatchObject({ status: 0, stderr: "Sending it again to 1 recipient.\n" })
    expect((await restante(["outbox", "show", lost, "--watch"])).stdout).toMatch(/^success +2 /m)
    for (const wrong of [[lost, "--until", "2026-01-01T00:00:00Z"], ["--to", `${other}/fine`]]) {
      expect((await restante(["outbox", "retry", ...wrong])).status).toBe(2)
    }
  })

  it("retries all since a time", async () => {
    const uri = await sent("/404-1/since")
    const time = new Date(Date.now() - 3_600_000).toISOString()
    const ran = await restante(["outbox", "retry", "--since", time])
    expect(ran.stderr).toMatch(/^Retrying \d+ recipients? of \d+ notifications?\.$/m)
    expect(ran.status).toBe(0)
    expect((await restante(["outbox", "show", uri, "--watch"])).status).toBe(0)
  })

  it("sends all since a time again to some, and says what is not", async () => {
    const uri = await sent("/again/since")
    const span = ["outbox", "retry", "--since", "2026-01-01T00:00:00Z"]
    const ran = await restante([...span, "--to", `${other}/again/since`])
    expect(ran).toMatchObject({
      status: 0,
      stderr: "Sending 1 notification again, to 1 recipient in all.\n"
    })
    await restante(["outbox", "show", uri, "--watch"])
    expect((await restante(["outbox", "withdraw", uri])).status).toBe(0)
    await restante(["outbox", "show", uri, "--watch"])
    const json = await restante([...span, "--to", `${other}/again/since`, "--json"])
    expect(JSON.parse(json.stdout)).toEqual({ notifications: 0, recipients: 0, refused: 1 })
    expect(json.stderr).toContain("1 notification not sent again: too often, or replaced since.")
  })

  it("pauses and resumes, all relays or those to an origin", async () => {
    const origin = new URL(other).origin
    const some = await restante(["outbox", "pause", "--origin", `${other}/fine`])
    expect(some.stderr).toMatch(new RegExp(`^Relays to ${origin} are paused since \\S+Z\\.$`, "m"))
    const args = ["--to", `${other}/fine`, "--description", "d", "--url", "http://a.test/letter"]
    const uri = (await restante(["send", ...args])).stdout.trim()
    const all = await restante(["outbox", "pause", "--json"])
    expect(JSON.parse(all.stdout)).toMatchObject({ status: "paused", pause: [{ origin }] })
    const one = await restante(["outbox", "resume", "--origin", origin])
    expect(one.stderr).toMatch(
      new RegExp(`^Relays to ${origin} are resumed\\. All relays are paused since \\S+Z\\.\n$`)
    )
    const none = await restante(["outbox", "resume"])
    expect(none).toMatchObject({ status: 0, stderr: "The relays are resumed.\n" })
    const again = await restante(["outbox", "resume"])
    expect(again).toMatchObject({ status: 0, stderr: "The relays were not paused.\n" })
    expect((await restante(["outbox", "show", uri, "--watch"])).status).toBe(0)
    expect((await restante(["outbox", "pause", "--origin", "example.org"])).status).toBe(2)
  })

  it("exits with 1 when the watched one has failed", async () => {
    const ran = await restante(["outbox", "show", await sent("/404/for-good"), "--watch"])
    expect(ran).toMatchObject({ status: 1, stdout: expect.stringMatching(/^failed /m) })
  })

  it("replaces one, and withdraws it", async () => {
    const uri = await sent("/fine/followed")
    const message = ["--description", "another letter", "--url", "http://a.test/another"]
    const replaced = await restante(["outbox", "replace", idOf(uri), ...message])
    expect(replaced).toMatchObject({ status: 0, stderr: "The notification is replaced.\n" })
    const shown = await restante(["outbox", "show", uri, "--watch"])
    expect(shown.stdout).toMatch(new RegExp(`${uri} {2}replaced \\S+Z\\n`))
    const withdrawn = await restante(["outbox", "withdraw", uri, "--json"])
    expect(JSON.parse(withdrawn.stdout)).toMatchObject({ withdrawn: expect.any(String) })
    expect((await restante(["outbox", "show", uri, "--watch"])).stdout).toContain("  withdrawn ")
    expect(bodies.get("/fine/followed")).toMatchObject([
      expect.stringContaining("a letter"),
      expect.stringContaining("<replaces>"),
      expect.stringContaining("<withdrawn>")
    ])
    const again = await restante(["outbox", "replace", uri, ...message])
    expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining("was withdrawn at") })
    const twice = await restante(["outbox", "withdraw", uri])
    expect(twice).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(
        "the notification was withdrawn before: see with restante outbox show"
      )
    })
  })

  it("replaces one by a file, and reports the fault", async () => {
    const uri = await sent("/fine/file")
    const file = fileWith("the words")
    const message = ["--description", "a file", "--content", file]
    expect(await restante(["outbox", "replace", uri, ...message])).toMatchObject({ status: 0 })
    const both = await restante(["outbox", "replace", uri, ...message, "--url", "http://a.test/"])
    expect(both).toMatchObject({ status: 2, stderr: expect.stringContaining("--url") })
    const note = await restante(["outbox", "replace", uri, "--description", "a note"])
    expect(note).toMatchObject({ status: 0, stderr: "The notification is replaced.\n" })
    const unknown = await restante(["outbox", "replace", "unknown", ...message])
    expect(unknown).toMatchObject({ status: 1, stderr: expect.stringContaining("404") })
  })

  it("deletes one, which then no longer exists", async () => {
    const uri = await sent("/fine")
    expect((await restante(["outbox", "delete", idOf(uri)])).status).toBe(0)
    const result = await restante(["outbox", "show", uri])
    expect(result).toMatchObject({ status: 1, stderr: expect.stringContaining("410") })
  })

  it.each<[string, number, ReadonlyArray<string>, RegExp]>([
    ["an unknown id", 1, ["show", "unknown"], /404/],
    ["another resource", 2, ["show", `${publicUrl}/mailboxes/alice`], /give ID, ACCOUNT\/ID/],
    ["an unknown id to delete", 1, ["delete", "unknown"], /404/],
    ["an id that reads as help", 2, ["delete", "-hello"], /-hello, which is no flag.*after "--"/],
    ["an id that reads as the version", 2, ["show", "-v_7"], /-v_7, which is no flag/],
    ["such an id after two dashes", 1, ["delete", "--", "-hello"], /404/],
    ["nothing to retry", 2, ["retry"], /either/],
    ["two things to retry", 2, ["retry", "id", "--since", "now"], /either/],
    ["no time", 1, ["retry", "--since", "yesterday"], /RFC 3339/],
    ["no status", 2, ["--status", "lost"], /status/],
    ["no limit", 2, ["--limit", "0"], /limit/],
    ["a wrong token", 1, ["--token-file", fileWith("wrong")], /401/],
    ["a wrong token of a subcommand", 1, ["show", "id", "--token-file", fileWith("wrong")], /401/]
  ])("reports the fault: %s", async (_, status, args, message) => {
    const ran = await restante(["outbox", ...args])
    expect(ran.status).toBe(status)
    expect(ran.stderr).toMatch(message)
  })

  it("continues with the next page, up to the limit", async () => {
    const { requests, stdout } = await withFake(({ method, url }, response) => {
      response.setHeader("link", `<${publicUrl}/outgoing/bob?limit=3&after=x>; rel="next"`)
      response.setHeader("notification-status", "waiting; success=1; retry=2")
      const isSecond = url?.includes("after") === true
      const [time, status] = ["2026-01-01T00:00:00Z", "waiting"]
      const ids = isSecond ? ["c", "d"] : ["a", "b"]
      const listed = ids.map((id) => ({ href: `${publicUrl}/outgoing/bob/${id}`, time, status }))
      response.end(method === "HEAD" ? undefined : JSON.stringify({ notification: listed }))
    }, ["outbox", "--limit", "3"])
    expect(requests.filter((one) => one.startsWith("GET /outgoing/bob"))).toHaveLength(2)
    expect(stdout.match(/\twaiting\tsuccess=1 retry=2\t.*\/[abc]\n/g)).toHaveLength(3)
  })

  it("rejects the response of another program", async () => {
    const hello: Answering = (_, response) => response.end("hello")
    for (const args of [["outbox"], ["outbox", "show", "id"], ["watch", "alice"]]) {
      const ran = await withFake(hello, args)
      expect(ran).toMatchObject({ status: 1, stderr: expect.stringContaining("is it restante?") })
    }
  })
})

describe("/metrics", () => {
  it("counts the deliveries, with no URI and no secret in a label", async () => {
    await sent("/fine", "/404/metrics")
    const { text } = await send(service.url, "/metrics")
    for (
      const line of [
        /^restante_delivery_attempts_total\{outcome="delivered"\} [1-9]/m,
        /^restante_delivery_attempts_total\{outcome="permanent_failure"\} [1-9]/m,
        /^restante_delivery_attempts_total\{outcome="retryable_failure"\} \d/m,
        /^restante_delivery_deferred_total \d/m,
        /^restante_delivery_in_flight \d/m,
        /^restante_delivery_waiting 0$/m,
        /^restante_delivery_oldest_waiting_seconds 0$/m,
        /^restante_delivery_circuits_open \d/m,
        /^restante_delivery_connections \d/m
      ]
    ) expect(text).toMatch(line)
    const delivery = text.split("\n").filter((line) => line.startsWith("restante_delivery"))
    for (const line of delivery) {
      expect(line).toMatch(/^restante_delivery_\w+(\{outcome="[a-z_]+"\})? [\d.e-]+$/)
    }
    expect(text).not.toContain("127.0.0.1")
    expect(text).not.toContain(adminToken)
  })
})
