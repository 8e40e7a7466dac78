/** The built commands for daily use of a service. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { streamFindings } from "../../deploy/doctor/stores.ts"
import { adminToken, eventually, publicUrl, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { echoes, receiver } from "../e2e/receivers.ts"
import { freePorts, type NatsServer, startServer } from "../runtime/nats/servers.ts"
import { endCommands, type Environment, fileWith, type Ran, run, serviceEnv,
  withinMs } from "./cli-harness.ts"

let service: Service

let echoing: string

let deaf: string

/** The path of alice's mailbox with its secret part. */
let sharedPath: string

const folder = temporaryFolder()

const restante = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ADMIN_TOKEN: adminToken, ...env }, input).ended

const request = async (method: string, path: string, body: object | undefined, slug = "") => {
  const headers = {
    authorization: `Bearer ${adminToken}`,
    "content-type": "application/json",
    ...slug === "" ? {} : { slug }
  }
  const content = body === undefined ? {} : { body: JSON.stringify(body) }
  return fetch(service.url + path, { method, headers, ...content })
}

/** The JSON output of a command: one document a line, or a single document. */
const json = async (args: ReadonlyArray<string>, env: Environment = {}, input = "") => {
  const { status, stderr, stdout } = await restante([...args, "--json"], env, input)
  expect(status, stderr).toBe(0)
  try {
    return [JSON.parse(stdout)]
  } catch {
    return stdout.trimEnd().split("\n").map((line) => JSON.parse(line))
  }
}

beforeAll(async () => {
  echoing = await receiver((received, response) => {
    if (!echoes(received, response)) response.writeHead(204).end()
  })
  deaf = await receiver((_, response) => response.writeHead(404).end())
  service = await start({ env: serviceEnv })
  const created = await request("POST", "/mailboxes", undefined, "alice")
  sharedPath = /\/mailboxes\/alice~[\w-]+/.exec(await created.text())?.[0] ?? ""
  expect(sharedPath).not.toBe("")
})

afterAll(endCommands)

/** A URI of the mailbox, or of a resource in it, with the secret part; the path is relative. */
const secretUri = (path = ""): string => `${publicUrl}${sharedPath}${path}`

const nobody: Environment = { RESTANTE_TOKEN: "", ADMIN_TOKEN: "" }

describe("a secret URI", () => {
  it.each([
    ["read", ["read", "URI"], ""],
    ["read", ["read", "URI", "--json"], "/notifications/1-x"],
    ["watch", ["watch", "URI"], ""],
    ["register", ["register", "URI", "http://a.test/hook"], ""],
    ["registrations list", ["registrations", "list", "URI"], ""],
    ["registrations show", ["registrations", "show", "URI"], "/registrations/x"],
    ["registrations attempts", ["registrations", "attempts", "URI"], "/registrations/x"],
    ["registrations pause", ["registrations", "pause", "URI"], "/registrations/x"],
    ["registrations lift", ["registrations", "lift", "URI"], "/registrations/x"],
    ["registrations test", ["registrations", "test", "URI"], "/registrations/x"],
    ["registrations rotate", ["registrations", "rotate", "URI"], "/registrations/x"],
    ["registrations delete", ["registrations", "delete", "URI"], "/registrations/x"]
  ])("is refused as an argument of %s: %j", async (_, args, path) => {
    for (const uri of [secretUri(path), secretUri(path).replace("~", "%7E"), `alice~x${path}`]) {
      const ran = await restante(args.map((arg) => arg === "URI" ? uri : arg))
      expect(ran).toMatchObject({ status: 2, stdout: "" })
      expect(ran.stderr).toContain("alice~…")
      expect(ran.stderr).toContain("has the secret part of a URI, which every user of the machine")
      expect(ran.stderr).toContain("give -, and the URI on standard input or typed at the prompt")
      expect(ran.stderr).not.toContain(sharedPath.slice("/mailboxes/alice~".length))
    }
  })

  it("is read from standard input, and needs no token", async () => {
    const { status, stderr } = await restante(["read", "-"], nobody, `${secretUri()}\n`)
    expect({ status, stderr }).toEqual({ status: 0, stderr: "The mailbox is empty.\n" })
  })
})

describe("restante read", () => {
  const content = "The minutes of the meeting.\n"
  let notification: string
  beforeAll(async () => {
    const file = join(folder, "minutes.txt")
    writeFileSync(file, content)
    const to = `${publicUrl}/mailboxes/alice`
    const message = [
      "--description",
      "Minutes\u202etxt",
      "--content",
      file,
      "--generate-password"
    ]
    const [sent] = await json(["send", "--to", to, ...message, "--wait"])
    expect(sent).toMatchObject({ status: "sent", recipient: [{ status: "success", href: to }] })
    const [read] = await json(["read", "alice"])
    notification = read.href
  })

  it("lists what is in a mailbox, without control characters", async () => {
    const { status, stdout } = await restante(["read", "alice"])
    expect(status).toBe(0)
    expect(stdout).toContain("Minutes txt")
    expect(stdout).not.toContain("\u202e")
    expect(stdout).toContain(notification)
  })

  it("shows one by its secret URI, from standard input", async () => {
    const { pathname } = new URL(notification)
    const uri = secretUri(pathname.slice("/mailboxes/alice".length))
    const [read] = await json(["read", "-"], nobody, uri)
    expect(read.item.description).toBe("Minutes\u202etxt")
  })

  it("shows one notification, and saves its content, with its password", async () => {
    const [read] = await json(["read", notification])
    expect(read.item.password).toMatch(/^\S{16,}$/)
    // The service's URIs begin with a base URL that is not its address here.
    const url = new URL(read.item.url)
    const put = await request("POST", "/mailboxes/alice", {
      item: {
        description: "reachable",
        url: `${service.url}${url.pathname}`,
        password: read.item.password
      }
    })
    const here = put.headers.get("location") ?? ""
    const file = join(folder, "saved.txt")
    expect(await restante(["read", here, "--save", file])).toMatchObject({ status: 0 })
    expect(readFileSync(file, "utf8")).toBe(content)
    const again = await restante(["read", here, "--save", file])
    expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining("EEXIST") })
    expect(await restante(["read", here, "--save", "-"])).toMatchObject({ stdout: content })
  })

  it.each([
    [["nobody"], 1, "there is no such mailbox"],
    [["alice", "--save", "x"], 2, "--save needs one notification"],
    [
      ["alice", "--since", "2026-01-01T00:00:00.000000000000999Z"],
      1,
      "no position of this mailbox"
    ],
    [["http://a.test/elsewhere"], 2, "the name or the URI of a mailbox"]
  ])("refuses %j", async (args, status, message) => {
    const ran = await restante(["read", ...args])
    expect(ran).toMatchObject({ status, stderr: expect.stringContaining(message) })
    expect(existsSync("x")).toBe(false)
  })
})

describe("restante register", () => {
  it("registers, waits for the challenge, rotates the secret, and ends", async () => {
    const made = await restante(["register", "alice", `${echoing}/hook`, "--wait"])
    expect(made.status, made.stderr).toBe(0)
    const [uri = "", secret = ""] = made.stdout.trim().split("\n")
    expect(secret).toMatch(/^whsec_/)
    const [found] = await json(["registrations", "show", uri])
    expect(found).toMatchObject({ status: "active", callback: `${echoing}/hook` })
    expect(found.secret).toBeUndefined()
    const [verification] = await json(["registrations", "attempts", uri])
    expect(verification).toMatchObject({ kind: "verification", code: 200, follows: "done" })
    const shown = await restante(["registrations", "attempts", uri])
    expect(shown.stdout).toMatch(/^\S+ verification: 200, \d+ ms\n {2}> accept: /)
    const [rotated] = await json(["registrations", "rotate", uri])
    expect(rotated.secret).toMatch(/^whsec_/)
    expect(rotated.secret).not.toBe(secret)
    const [held] = await json(["registrations", "pause", uri])
    expect(held).toMatchObject({ href: found.href, status: "paused" })
    const [lifted] = await json(["registrations", "lift", uri])
    expect(lifted).toMatchObject({ href: found.href, status: "active" })
    const [tested] = await json(["registrations", "test", uri])
    expect(tested).toMatchObject({
      status: "delivered",
      code: "204",
      attempt: { kind: "test", code: 204, follows: "done", answer: { bytes: 0 } }
    })
    const [latest] = await json(["registrations", "attempts", uri])
    expect(latest).toEqual(tested.attempt)
    const shownTest = await restante(["registrations", "test", uri])
    expect(shownTest.stdout).toMatch(/^delivered, answered 204, \d+ ms\n$/)
    const span = ["--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z"]
    const [replayed] = await json(["registrations", "replay", uri, ...span])
    expect(replayed).toMatchObject({ href: found.href, status: "active", cursor: found.cursor })
    await json(["registrations", "replay", uri, ...span.slice(0, 2)])
    await eventually(withinMs, "it is pushed again", async () => {
      const attempts = await json(["registrations", "attempts", uri])
      return attempts.some(({ kind }) => kind === "push") || undefined
    })
    expect(await json(["registrations", "list", "alice"])).toHaveLength(1)
    expect(await restante(["registrations", "delete", uri])).toMatchObject({ status: 0 })
    expect(await restante(["registrations", "show", uri])).toMatchObject({ status: 1 })
    const { stderr } = await restante(["registrations", "list", "alice"])
    expect(stderr).toContain("has no registrations")
  })

  it("does so with an account's token and secret URIs from standard input", async () => {
    const callback = `${echoing}/shared`
    const issued = await restante(["account", "add", "bob"])
    expect(issued.stderr).toMatch(
      /^Token of bob, .*\nFailures of what bob sends are reported to its mailbox \S+\/reports-/
    )
    const bob: Environment = { RESTANTE_TOKEN: issued.stdout.trim() }
    const made = await restante(["register", "-", callback, "--wait"], bob, secretUri())
    expect(made.status, made.stderr).toBe(0)
    const uri = made.stdout.split("\n")[0] ?? ""
    expect(uri.startsWith(secretUri("/registrations/"))).toBe(true)
    const [found] = await json(["registrations", "show", "-"], bob, uri)
    expect(found).toMatchObject({ callback })
    expect(await json(["registrations", "list", "-"], bob, secretUri())).toHaveLength(1)
    const deleted = await restante(["registrations", "delete", "-"], bob, uri)
    expect(deleted).toMatchObject({ status: 0 })
  })

  it("shows what a callback that fails has answered to a test", async () => {
    const broken = await receiver((request, response) => {
      if (!echoes(request, response)) response.writeHead(500).end("no such table")
    })
    const made = await restante(["register", "alice", `${broken}/hook`, "--wait"])
    const [uri = ""] = made.stdout.split("\n")
    const ran = await restante(["registrations", "test", uri])
    expect(ran.stdout).toMatch(/^failed, answered 500, \d+ ms\n\S+ test: 500, \d+ ms; next: none /)
    expect(ran.stdout).toContain("  > webhook-id: msg_")
    expect(ran.stdout).toContain("  | no such table")
    expect(ran).toMatchObject({
      status: 1,
      stderr: "restante: the test of the callback has failed: correct the callback, and repeat " +
        "the command\n"
    })
    expect(await restante(["registrations", "delete", uri])).toMatchObject({ status: 0 })
  })

  it("reports that the callback does not echo", async () => {
    const ran = await restante(["register", "alice", `${deaf}/hook`, "--wait"])
    expect(ran).toMatchObject({ status: 1, stderr: expect.stringContaining("challenge") })
    const [uri = ""] = ran.stdout.split("\n")
    const tested = await restante(["registrations", "test", uri])
    expect(tested).toMatchObject({ status: 1, stderr: expect.stringContaining("challenge") })
  })

  it("requires URIs", async () => {
    expect(await restante(["register", "alice", "hook"])).toMatchObject({ status: 2 })
    expect(await restante(["registrations", "show", "alice"])).toMatchObject({ status: 2 })
  })
})

describe("restante bridge", () => {
  const played = (...lines: ReadonlyArray<string>) =>
    restante(["bridge"], {}, lines.map((line) => `${line}\n`).join(""))

  it("reaches the other side, also after confused answers", async () => {
    const { status, stdout } = await played("?", "yes", "Sir Robin", "?", "The grail", "Assur")
    expect(stdout.trimEnd().split("\n").at(-1)).toBe("Right. Off you go.")
    expect(stdout.match(/What is your quest\?/g)).toHaveLength(2)
    expect(status).toBe(0)
  })

  it("casts a user with a wrong answer", async () => {
    const { status, stdout } = await played("yes", "Robin", "The grail", "I don't know that")
    expect(stdout).toContain("gorge")
    expect(status).toBe(1)
  })

  it("repeats the question after an unusable answer", async () => {
    const answers = ["yes", "", "Robin", "http://localhost:1/nothing", "The grail", "", "Assur"]
    const { status, stderr, stdout } = await played(...answers)
    expect(stdout.trimEnd().split("\n").at(-1)).toBe("Right. Off you go.")
    expect(stderr.match(/422/g)).toHaveLength(3)
    expect(status).toBe(0)
  })

  it("continues an interrupted session", async () => {
    const left = await played("yes", "Robin")
    expect(left.status).toBe(1)
    const [, session = ""] = /restante bridge (\S+)/.exec(left.stderr) ?? []
    const ended = await restante(["bridge", session], {}, "The grail\nNineveh\n")
    expect(ended).toMatchObject({ status: 0, stdout: expect.stringContaining("Off you go") })
  })

  it("requires a session", async () => {
    expect(await restante(["bridge", "/mailboxes/alice"])).toMatchObject({ status: 2 })
    expect(await restante(["bridge", "/sessions/none"])).toMatchObject({ status: 1 })
  })
})

describe("restante top", () => {
  it("shows the nodes, and what they do a second", async () => {
    const samples = await json(["top", "--count", "2", "--interval", "1"])
    expect(samples).toHaveLength(2)
    const [first, second] = samples
    expect(first).toMatchObject({ shards: 256, owned: 256, notices: [] })
    expect(first.nodes[0]).toMatchObject({ name: "sole", state: "up", shards: 256 })
    expect(first.nodes[0].commitsPerSecond).toBeUndefined()
    expect(second.nodes[0].commitsPerSecond).toBeGreaterThanOrEqual(0)
    const { stdout } = await restante(["top", "--count", "1"])
    expect(stdout).toMatch(/NODE.*DECISIONS\/S/)
  })

  it("takes RESTANTE_TOKEN where ADMIN_TOKEN is not set, and else ADMIN_TOKEN", async () => {
    const only = { ADMIN_TOKEN: "", RESTANTE_TOKEN: adminToken }
    expect(await restante(["top", "--count", "1"], only)).toMatchObject({ status: 0 })
    const both = { RESTANTE_TOKEN: "wrong" }
    expect(await restante(["top", "--count", "1"], both)).toMatchObject({ status: 0 })
  })

  it("requires an admin, and a service", async () => {
    expect(await restante(["top", "--count", "1", "--token-file", fileWith("wrong")]))
      .toMatchObject({ status: 1 })
    const nowhere = { BASE_URL: "http://127.0.0.1:9" }
    expect(await restante(["top", "--count", "1"], nowhere)).toMatchObject({ status: 75 })
  })
})

describe("restante doctor", () => {
  interface Finding {
    readonly name: string
    readonly state: string
    readonly found: string
    readonly advice?: string
  }
  const advices = (findings: ReadonlyArray<Finding>) =>
    findings.flatMap(({ advice }) => advice === undefined ? [] : [advice])
  const examined = async (env: Environment) => {
    const { status, stdout } = await restante(["doctor", "--json"], env)
    const findings: ReadonlyArray<Finding> = JSON.parse(stdout)
    for (const { advice, state } of findings) expect(advice === undefined).toBe(state === "ok")
    for (const told of [findings.map(({ name }) => name), advices(findings)]) {
      expect(told).toEqual([...new Set(told)])
    }
    return { status, of: (name: string) => findings.find((one) => one.name === name) }
  }
  const fresh = () => ({ DATA_DIR: join(folder, "not", "there") })

  it("examines a machine on which a node can start", async () => {
    const { of, status } = await examined(fresh())
    expect(status).toBe(0)
    const names = ["platform", "memory", "clock", "disk", "store", "outbound rules", "telemetry"]
    for (const name of names) {
      expect(of(name), name).toMatchObject({ state: expect.stringMatching(/ok|warn/) })
    }
    expect(of("service")).toMatchObject({ state: "ok" })
    expect(of("service's clock")).toMatchObject({ state: "ok" })
  })

  it("accepts a store in use", async () => {
    const { of } = await examined({ DATA_DIR: service.dataDir })
    expect(of("store")).toMatchObject({ state: "ok", found: expect.stringContaining("in use") })
    // The advice of a start that finds another process.
    expect(of("store")?.found).not.toContain("stop")
  })

  it("examines the base URL that the running service reports", async () => {
    const other = await examined(fresh())
    expect(other.of("base URL")).toMatchObject({
      state: "warn",
      found: `URIs of the running service begin with ${publicUrl}, but BASE_URL is ${service.url}`
    })
    expect(other.of("service")?.found).toMatch(/ is ready: restante \d+\.\d+\.\d+$/)
    const unset = await examined({ ...fresh(), BASE_URL: "", PORT: String(service.port) })
    expect(unset.of("base URL")).toMatchObject({
      state: "warn",
      found: `${publicUrl}, without TLS`
    })
  })

  it("asks the service for its settings, and examines those", async () => {
    const { of } = await examined({ ...fresh(), OUTBOUND_ALLOW: "10.0.0.0/8", RETENTION: "P9D" })
    expect(of("settings")).toMatchObject({ state: "warn" })
    const found = of("settings")?.found.split("; ")
    expect(found).toContain("RETENTION is P30D there and P9D here")
    expect(found).toContain("OUTBOUND_ALLOW is 127.0.0.0/8 there and 10.0.0.0/8 here")
    expect(of("outbound rules")?.found).toContain("127.0.0.0/8")
    expect(of("outbound rules")?.found).not.toContain("10.0.0.0/8")
    const ofAccount = { ...fresh(), ADMIN_TOKEN: "", RESTANTE_TOKEN: adminToken }
    expect((await examined(ofAccount)).of("settings")).toMatchObject({ state: "warn" })
    const unknown = await examined({ ...fresh(), ...nobody })
    expect(unknown.of("settings")).toMatchObject({
      state: "ok",
      found: expect.stringContaining("tells its settings to admins only")
    })
  })

  it("sends its token with TLS or on this machine only, and follows no redirect", async () => {
    const asked: Array<string> = []
    const other = await receiver((request, response) => {
      asked.push(request.path)
      response.end()
    })
    const link = { rel: "mailboxes", href: "http://box.test/mailboxes" }
    const redirecting = await receiver((request, response) => {
      if (request.path === "/settings") response.writeHead(307, { location: `${other}/settings` })
      response.end(JSON.stringify({ version: "1.0.0", link: [link] }))
    })
    const { of } = await examined({ ...fresh(), BASE_URL: redirecting })
    expect(of("settings")?.found).toContain("tells its settings to admins only")
    expect(asked).toEqual([])
  })

  it("examines its own settings where no service runs, and gives each advice once", async () => {
    const [port = 0] = await freePorts(1)
    const { of } = await examined({ ...fresh(), BASE_URL: "", PORT: String(port) })
    expect(of("base URL")).toMatchObject({ state: "warn", found: expect.stringContaining("not") })
    expect(of("service")).toMatchObject({ state: "warn", advice: "start it (restante serve)" })
    expect(of("settings")).toBeUndefined()
  })

  it("takes no other program for the service", async () => {
    const link = { rel: "mailboxes", href: "nowhere/mailboxes" }
    for (const text of ["{}", JSON.stringify({ version: "1.0.0", link: [link] })]) {
      const other = await receiver((_, response) => response.end(text))
      const { of } = await examined({ ...fresh(), BASE_URL: other })
      expect(of("service")).toMatchObject({
        state: "warn",
        found: `${other} is ready, but has no service document of restante`
      })
      expect(of("base URL")).toMatchObject({ state: "ok", found: other })
    }
  })

  it("reports streams together of which it finds the same", () => {
    const stream = (name: string, replicas: number) => ({
      cluster: { leader: "a", replicas: [] },
      config: { name, num_replicas: replicas }
    })
    const streams = [stream("KV_a", 1), stream("KV_b", 3), stream("KV_c", 1)]
    expect(streamFindings(streams, true)).toEqual([
      {
        name: "streams",
        state: "warn",
        found: "KV_a, KV_c: 1 copy each",
        advice: expect.stringContaining("add copies")
      },
      { name: "streams", state: "ok", found: "KV_b: 3 copies", advice: undefined }
    ])
  })

  it("reports an unusable data folder", async () => {
    const file = join(folder, "in-the-way")
    writeFileSync(file, "")
    for (const path of [file, join(file, "below")]) {
      const { of, status } = await examined({ DATA_DIR: path })
      expect(status).toBe(1)
      expect(of("data folder")).toMatchObject({ state: "fail", found: `${file} is not a folder` })
      expect(of("store")).toBeUndefined()
    }
  })

  it("finds problems before a start", async () => {
    const collector = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.test:4318/otlp",
      OTEL_EXPORTER_OTLP_HEADERS: "api-key=secret"
    }
    const careless = { OUTBOUND_ALLOW: "0.0.0.0/0", ADMIN_TOKEN: "secret", ...fresh() }
    const origin = "http://post.example.test:9"
    const { of } = await examined({ ...careless, ...collector, BASE_URL: origin })
    expect(of("outbound rules")).toMatchObject({
      state: "warn",
      advice: expect.stringContaining("metadata")
    })
    expect(of("admin token")).toMatchObject({
      state: "fail",
      advice: expect.stringContaining("ADMIN_TOKEN has 6 characters")
    })
    expect(of("base URL")).toMatchObject({ state: "warn", found: expect.stringContaining("TLS") })
    expect(of("telemetry")).toEqual({
      name: "telemetry",
      state: "warn",
      found: "the collector is at http://collector.test:4318",
      advice: expect.stringContaining("https:")
    })
    expect(of("service")).toMatchObject({ state: "warn" })
    const nowhere = await examined({ NATS_URL: "nats://127.0.0.1:9", ...fresh() })
    expect(nowhere.status).toBe(1)
    expect(nowhere.of("NATS")).toMatchObject({ state: "fail" })
    const wrong = await restante(["doctor"], { PORT: "many" })
    expect(wrong).toMatchObject({ status: 78, stderr: expect.stringContaining("PORT") })
  })

  it("finds a proxy that hides the host name of content", async () => {
    const own = { BASE_URL: "http://post.example.test", ...fresh() }
    const unset = await examined(own)
    expect(unset.of("content base URL")).toMatchObject({ state: "warn" })
    expect(unset.of("content origin")).toBeUndefined()
    const hidden = await examined({ ...own, CONTENT_BASE_URL: service.url })
    expect(hidden.of("content base URL")).toMatchObject({ state: "ok" })
    expect(hidden.of("content origin")).toMatchObject({
      state: "fail",
      found: expect.stringContaining("/livez responds 200 instead of 404"),
      advice: expect.stringContaining("Host")
    })
  })

  it("takes nobody else's 404 for the origin of content", async () => {
    const own = { BASE_URL: "http://post.example.test", ...fresh() }
    const others = await examined({ ...own, CONTENT_BASE_URL: deaf })
    expect(others.of("content origin")).toMatchObject({
      state: "fail",
      found: expect.stringContaining("/livez responds 404, but not as an origin of content does"),
      advice: expect.stringContaining("Host")
    })
    const [port = 0] = await freePorts(1)
    const contentBaseUrl = `http://localhost:${port}`
    const known = await start({ env: { PORT: String(port), CONTENT_BASE_URL: contentBaseUrl } })
    const { of } = await examined({ ...own, CONTENT_BASE_URL: contentBaseUrl })
    expect(of("content origin")).toMatchObject({ state: "ok" })
    await known.stop()
  })

  describe("of a cluster", () => {
    let nats: NatsServer
    beforeAll(async () => {
      nats = await startServer({ extra: "max_payload: 512KB" })
    })
    afterAll(() => nats.close())

    it("examines the servers of NATS", async () => {
      const { of, status } = await examined({ NATS_URL: nats.url, ...fresh() })
      expect(status).toBe(0)
      expect(of("NATS")).toMatchObject({ state: "ok", found: expect.stringMatching(/2\.\d+/) })
      expect(of("NATS max_payload")).toMatchObject({ state: "warn" })
    })
  })
})

describe("--json", () => {
  it("is supported by the commands about accounts and sent notifications", async () => {
    const [made] = await json(["account", "add", "dora"])
    expect(made).toMatchObject({
      account: "dora",
      token: expect.stringMatching(/^\S{32,}$/),
      "failure-reports": expect.stringMatching(/^reports-[0-9a-f]{32}$/)
    })
    expect(await json(["account", "list"])).toContainEqual({ name: "dora", role: [] })
    expect(await json(["account", "revoke", "dora", "--all"])).toEqual([
      { account: "dora", revoked: "all" }
    ])
    const exported = await restante(["account", "export", "dora"])
    const lines = exported.stdout.trimEnd().split("\n").map((line) => JSON.parse(line))
    expect([exported.status, lines.at(0).account, lines.at(-1).kind]).toEqual([0, "dora", "end"])
    expect(await json(["account", "remove", "dora"])).toEqual([{ removed: "dora" }])
    await json(["account", "add", "carol"])
    expect(await json(["account", "remove", "carol", "--with-owned"]))
      .toEqual([{ removed: "carol" }])
    const message = ["--description", "x", "--url", "http://a.test/x"]
    const [sent] = await json(["send", "--to", `${publicUrl}/mailboxes/alice`, ...message])
    const [found] = await json(["outbox", "show", sent.href])
    expect(found).toMatchObject({ href: sent.href, recipient: [{ attempts: 1 }] })
    expect(await json(["outbox"])).toContainEqual(expect.objectContaining({ href: sent.href }))
    const [deleted] = await json(["outbox", "delete", sent.href])
    expect(sent.href).toContain(deleted.deleted)
  })
})
