/**
 * Names and URIs of resources are interchangeable in every command: each command that takes one
 * runs with the short name, the path and the URI, and does the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { manualPages } from "../../deploy/manual/index.ts"
import { allSettings } from "../../deploy/settings/index.ts"
import { adminToken, publicUrl, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { echoes, receiver } from "../e2e/receivers.ts"
import { endCommands, type Environment, fileWith, type Ran, run,
  serviceEnv } from "./cli-harness.ts"

let service: Service

/** A command with the token of RESTANTE_TOKEN, which is for every command. */
const restante = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ...env }, input).ended

/** The output of a command that must succeed. */
const succeed = async (args: ReadonlyArray<string>, input = ""): Promise<string> => {
  const { status, stderr, stdout } = await restante(args, {}, input)
  expect(status, `${args.join(" ")}: ${stderr}`).toBe(0)
  return stdout.trim()
}

const post = async (
  path: string,
  body: object,
  slug = ""
): Promise<{ readonly href?: unknown }> => {
  const response = await fetch(service.url + path, {
    method: "POST",
    headers: {
      accept: "application/json",
      authorization: `Bearer ${adminToken}`,
      "content-type": "application/json",
      ...slug === "" ? {} : { slug }
    },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  expect(response.status, text).toBeLessThan(300)
  return JSON.parse(text)
}

let callback = ""

let customers = ""

let sent = ""

const letterTo = (
  to: string
) => ["send", "--to", to, "--description", "a letter", "--url", "http://a.test/letter"]

const send = (): Promise<string> => succeed(letterTo("alice"))

const register = async (): Promise<string> =>
  (await succeed(["register", "alice", callback, "--wait"])).split("\n")[0] ?? ""

const lastSegment = (uri: string): string => uri.slice(uri.lastIndexOf("/") + 1)

const received = async (): Promise<string> => {
  const [first = "{}"] = (await succeed(["read", "alice", "--json", "--limit", "1"])).split("\n")
  return String(JSON.parse(first).href)
}

const account = async (): Promise<string> => {
  const name = `carol-${counter.next()}`
  await succeed(["account", "add", name])
  return `${service.url}/accounts/${name}`
}

const counter = { at: 0, next: (): number => ++counter.at }

const session = async (): Promise<string> => {
  const { stderr } = await restante(["bridge"], {}, "yes\nRobin\n")
  return `${publicUrl}/sessions/${/restante bridge \S*\/(\S+)/.exec(stderr)?.[1] ?? ""}`
}

const token = async (): Promise<string> => {
  const label = `label-${counter.next()}`
  await succeed(["account", "token", "bob", "--name", label])
  const tokens = JSON.parse(await succeed(["account", "tokens", "bob", "--json"]))
  const id = tokens.find(({ name }: { readonly name: string }) => name === label)?.id
  return `${service.url}/accounts/bob/tokens/${id}`
}

const query = async (): Promise<string> =>
  String((await post("/queries", { on: "customers" })).href)

/** The short name of a resource with this URI. */
const shortName = (uri: string): string => {
  const [, first = "", second = "", , fourth] = new URL(uri).pathname.split("/")
  if (first === "outgoing") return lastSegment(uri)
  return fourth === undefined ? second : `${second}/${fourth}`
}

const mailbox = () => Promise.resolve(`${publicUrl}/mailboxes/alice`)

const ownMailbox = () => Promise.resolve(`${service.url}/mailboxes/alice`)

const bob = () => Promise.resolve(`${service.url}/accounts/bob`)

const admin = () => Promise.resolve(`${publicUrl}/accounts/admin`)

const newMailbox = () => Promise.resolve(`${service.url}/mailboxes/reports-${counter.next()}`)

/**
 * The command with `RESOURCE` for the argument, how to make a resource, and standard input. NEW is
 * a name that nothing has yet, SERVICE is the address of the service, CUSTOMERS a file,
 * and SENT a notification.
 */
type Row = readonly [command: string, resource: () => Promise<string>, input?: string]

const rows: ReadonlyArray<Row> = [
  ["account add RESOURCE", () => Promise.resolve(`${service.url}/accounts/x${counter.next()}`)],
  ["account add NEW --reports-mailbox RESOURCE", newMailbox],
  // One at a time of an account.
  ["account export RESOURCE", account],
  ["account remove RESOURCE", account],
  ["account token RESOURCE", bob],
  ["account token bob --scope mailbox:RESOURCE", ownMailbox],
  ["account tokens RESOURCE", bob],
  ["account revoke bob RESOURCE", token],
  ["account revoke RESOURCE --all", bob],
  ["audit list --account RESOURCE", bob],
  ["send --to RESOURCE --description letter --url http://a.test/x", mailbox],
  ["context add NEW --url SERVICE --account RESOURCE", admin],
  ["context show --account RESOURCE", admin],
  ["load customers CUSTOMERS --format csv --account RESOURCE", admin],
  ["outbox --account RESOURCE", admin],
  ["outbox pause --account RESOURCE", admin],
  ["outbox resume --account RESOURCE", admin],
  ["query quotes --account RESOURCE", admin],
  ["read RESOURCE", mailbox],
  ["read RESOURCE", received],
  ["register RESOURCE CALLBACK", mailbox],
  ["registrations list RESOURCE", mailbox],
  ["registrations show RESOURCE", register],
  ["registrations attempts RESOURCE", register],
  ["registrations pause RESOURCE", register],
  ["registrations lift RESOURCE", register],
  ["registrations test RESOURCE", register],
  ["registrations replay RESOURCE --since 2026-01-01T00:00:00Z", register],
  ["registrations rotate RESOURCE", register],
  ["registrations delete RESOURCE", register],
  ["outbox show RESOURCE", send],
  ["outbox attempts RESOURCE", send],
  ["outbox retry RESOURCE --to alice", send],
  ["outbox retry SENT --to RESOURCE", mailbox],
  ["outbox replace RESOURCE --description letter --url http://a.test/y", send],
  ["outbox withdraw RESOURCE", send],
  ["outbox delete RESOURCE", send],
  ["query customers --query RESOURCE", query],
  ["bridge RESOURCE", session, "The grail\nNineveh\n"]
]

/** Commands whose arguments name no resource of the service, or that never end. */
const withoutResource = new Set([
  "serve",
  "config",
  "doctor",
  "top",
  "check",
  "backup",
  "restore",
  "migrate",
  "audit verify",
  "account list",
  "context use",
  "context list",
  "context remove",
  "registrations check-signature"
])

const commandOf = (row: string): string =>
  row.split(" ").slice(0, /^(?:account|audit|context|registrations|outbox) \w/.test(row) ? 2 : 1)
    .join(" ")

beforeAll(async () => {
  callback = await receiver((request, response) => {
    if (!echoes(request, response)) response.writeHead(204).end()
  })
  customers = fileWith("id,name,age\nc1,Ann,30\n")
  service = await start({ env: serviceEnv })
  await post("/mailboxes", {}, "alice")
  await succeed(["account", "add", "bob"])
  sent = (await succeed([...letterTo("alice"), "--wait"])).split("\n")[0] ?? ""
})

afterAll(endCommands)

/** The flags with a value of each command, as the manual page lists them. */
const flagsOfCommands = async (): Promise<ReadonlyMap<string, ReadonlyArray<string>>> => {
  const page = (await manualPages()).get("restante.1") ?? ""
  const [, ...parts] = page.replaceAll("\\-", "-").split(/^\.SS restante /m)
  return new Map(
    parts.map((part) => [
      /^.*/.exec(part)?.[0] ?? "",
      [...part.matchAll(/^\\fB--([a-z-]+)\\fR \\fI/gm)].map(([, flag = ""]) => flag)
    ])
  )
}

/** Flags whose values name no resource of the service, in whatever command they are. */
const plainFlags: ReadonlySet<string> = new Set([
  ...allSettings.flatMap(({ flag }) => flag ?? []),
  ...["token-file", "password-file", "secret-file", "body-file", "content", "save", "exec"],
  ...["context", "type"],
  ...["limit", "count", "since", "until", "expires", "at", "name", "role"],
  ...["action", "outcome", "noted", "status", "description", "priority", "tags", "click"],
  ...["agemin", "return", "format", "interval"],
  // Of whatever is on the web, not of this service.
  ...["url", "origin"]
])

/** Flags of one command: servers, and targets, of which a short name would not say the kind. */
const plainFlagsOf: ReadonlySet<string> = new Set(["migrate --to", "audit list --target"])

/** The flags of a row that take a name of a resource. */
const flagsOf = (row: string): ReadonlyArray<string> =>
  [...row.matchAll(/--([a-z-]+) \S*RESOURCE/g)].map(([, flag = ""]) =>
    `${commandOf(row)} --${flag}`
  )

/** The account of a row, which each command that has the flag takes in the same form. */
const accountFlagOf = (
  row: string,
  flags: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const command = commandOf(row)
  const isShared = command.startsWith("outbox ")
  const has = flags.get(isShared ? "outbox" : command)?.includes("account") === true
  return has && !row.includes("--account") ? ["--account"] : []
}

describe("a resource of the service", () => {
  it("is named in each command, or in none of these", async () => {
    const commands = [...(await flagsOfCommands()).keys()]
      .filter((name) => !/^(?:account|audit|context|registrations)$/.test(name))
    const named = new Set([...rows.map(([command]) => commandOf(command)), "watch"])
    expect([...named, ...withoutResource].toSorted()).toEqual(commands.toSorted())
  })

  it("is named by each flag that takes one", async () => {
    const flags = await flagsOfCommands()
    const taken = [...flags].flatMap(([command, names]) =>
      names.filter((flag) => !plainFlags.has(flag)).map((flag) => `${command} --${flag}`)
    ).filter((flag) => !plainFlagsOf.has(flag))
    const named = rows.flatMap(([row]) => [
      ...flagsOf(row),
      ...accountFlagOf(row, flags).map((flag) => `${commandOf(row)} ${flag}`)
    ])
    const ofWatch = "watch --account"
    expect(taken.length).toBeGreaterThan(rows.length / 2)
    expect(taken.filter((flag) => !named.includes(flag) && flag !== ofWatch)).toEqual([])
    expect([...plainFlags].filter((flag) => ![...flags.values()].flat().includes(flag))).toEqual([])
  })

  for (const [command, make, input] of rows) {
    it(`is named by its name, its path or its URI in ${command}`, async () => {
      const pathOf = (uri: string): string => new URL(uri).pathname
      const forms = [
        shortName,
        pathOf,
        (uri: string) => publicUrl + pathOf(uri),
        (uri: string) => service.url + pathOf(uri)
      ]
      const flags = await flagsOfCommands()
      await Promise.all(forms.map(async (form) => {
        const named = form(await make())
        const args = command.split(" ").map((word, at) =>
          word.replace("RESOURCE", named).replace("CALLBACK", `${callback}/${at}-${counter.next()}`)
            .replace("NEW", `new-${counter.next()}`).replace("SERVICE", service.url)
            .replace("CUSTOMERS", customers).replace("SENT", sent)
        )
        for (const flag of accountFlagOf(command, flags)) args.push(flag, form(await admin()))
        // A context is the user's: each command has a user of its own.
        const home = command.startsWith("context ") ? { XDG_CONFIG_HOME: temporaryFolder() } : {}
        const { status, stderr } = await restante(args, home, input)
        expect(status, `${args.join(" ")}: ${stderr}`).toBe(0)
      }))
    })
  }

  it("is watched by its name, its path or its URI", async () => {
    for (const start of ["", "/mailboxes/", `${service.url}/mailboxes/`]) {
      const account = `${start.replace("mailboxes", "accounts")}admin`
      const args = ["watch", `${start}alice`, "--account", account]
      const { child, ended, output } = run(args, { BASE_URL: service.url })
      await new Promise<void>((resolve) => {
        child.once("close", () => resolve())
        child.stdout?.on("data", () => {
          if (output.stdout.includes("a letter")) resolve()
        })
      })
      child.kill("SIGTERM")
      expect((await ended).stdout).toContain("a letter")
    }
  })

  it.each([
    [["account", "tokens", "/mailboxes/alice"], "the URI of an account, or its name"],
    [["account", "revoke", "bob", "/accounts/alice/tokens/1"], "name the account alice"],
    [["read", "/accounts/bob"], "give the name or the URI of a mailbox, or MAILBOX/ID"],
    [["registrations", "show", "alice"], "give MAILBOX/ID or the URI of a registration"],
    [["outbox", "show", "/mailboxes/alice"], "give ID, ACCOUNT/ID or the URI"],
    [["bridge", "/mailboxes/alice"], "give the id or the URI of a session"],
    [["query", "customers", "--query", "/customers"], "give the id or the URI of a query"]
  ])("is refused where another kind is named: %j", async (args, message) => {
    const ran = await restante(args)
    expect(ran).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(message) })
  })

  const other = "https://other.test"
  const message = (): string =>
    `is no address of ${service.url}, which the command calls: give the name alone`

  it("of another service is refused in RESTANTE_ACCOUNT, and in a new context", async () => {
    const account = `${other}/accounts/admin`
    const ran = await restante(["outbox"], { RESTANTE_ACCOUNT: account })
    expect(ran).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`${account} (environment RESTANTE_ACCOUNT) ${message()}`)
    })
    for (const own of ["admin", `${publicUrl}/accounts/admin`, "/accounts/admin"]) {
      expect(await restante(["outbox"], { RESTANTE_ACCOUNT: own })).toMatchObject({ status: 0 })
    }
    const folder = { XDG_CONFIG_HOME: temporaryFolder() }
    const context = ["context", "add", "here", "--url", service.url, "--account"]
    expect(await restante([...context, account], folder)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(message())
    })
    expect((await restante(["context", "list"], folder)).stdout).not.toContain("here")
  })

  it("is a recipient with the base URL of the service, whatever address is called", async () => {
    const [href = ""] = (await succeed([...letterTo("alice"), "--wait"])).split("\n")
    const recipientsOf = async () =>
      JSON.parse(await succeed(["outbox", "show", href, "--json"])).recipient
    const expected = [{ href: `${publicUrl}/mailboxes/alice` }]
    expect(await recipientsOf()).toMatchObject(expected)
    // The service refuses a URI that is none of the recipients.
    await succeed(["outbox", "retry", href, "--to", "alice"])
    await succeed(["outbox", "retry", href, "--to", "/mailboxes/alice"])
    expect(await recipientsOf()).toMatchObject(expected)
  })

  it.each([
    ["account", "add", `${other}/accounts/dora`],
    ["account", "export", `${other}/accounts/bob`],
    ["account", "remove", `${other}/accounts/bob`],
    ["account", "tokens", `${other}/accounts/bob`],
    ["account", "revoke", `${other}/accounts/bob`, "--all"],
    ["account", "revoke", "bob", `${other}/accounts/bob/tokens/x1`],
    ["account", "token", `${other}/accounts/bob`],
    ["account", "token", "bob", "--scope", `mailbox:${other}/mailboxes/alice`],
    ["account", "add", "dora", "--reports-mailbox", `${other}/mailboxes/reports`],
    ["audit", "list", "--account", `${other}/accounts/bob`],
    ["audit", "list", "--target", `${other}/accounts/bob`],
    ["outbox", "--account", `${other}/accounts/admin`],
    ["read", "alice", "--account", `${other}/accounts/admin`],
    ["bridge", "--account", `${other}/accounts/admin`],
    ["context", "show", "--account", `${other}/accounts/admin`],
    ["read", `${other}/mailboxes/alice`],
    ["watch", `${other}/mailboxes/alice`],
    ["register", `${other}/mailboxes/alice`, "http://a.test/hook"],
    ["registrations", "list", `${other}/mailboxes/alice`],
    ["query", "customers", "--query", `${other}/queries/x1`],
    ["bridge", `${other}/sessions/x1`]
  ])("of another service is refused: %s %s %s", async (...args) => {
    const ran = await restante(args)
    expect(ran).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining(message())
    })
  })

  it("of another service is neither removed nor changed", async () => {
    const elsewhere = (uri: string): string => other + new URL(uri).pathname
    const registration = await register()
    for (const command of ["show", "attempts", "pause", "lift", "test", "rotate", "delete"]) {
      const ran = await restante(["registrations", command, elsewhere(registration)])
      expect(ran).toMatchObject({ status: 2, stderr: expect.stringContaining(message()) })
    }
    expect(JSON.parse(await succeed(["registrations", "show", registration, "--json"])))
      .toMatchObject({ status: "active" })
    const sent = await send()
    for (const command of ["show", "attempts", "retry", "withdraw", "delete"]) {
      const ran = await restante(["outbox", command, elsewhere(sent)])
      expect(ran).toMatchObject({ status: 2, stderr: expect.stringContaining(message()) })
    }
    expect(JSON.parse(await succeed(["outbox", "show", sent, "--json"]))).toEqual(
      expect.not.objectContaining({ withdrawn: expect.anything() })
    )
  })

  it("of another service is refused as a secret URI, which is not shown", async () => {
    const ran = await restante(["read", "-"], {}, `${other}/mailboxes/alice~secret\n`)
    expect(ran).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`the URI of standard input ${message()}`)
    })
    expect(ran.stderr).not.toContain("secret")
  })
})
