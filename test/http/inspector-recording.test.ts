/**
 * The record of the inspector (`INSPECTOR=on`, protocol §6): messages as they passed a node, and
 * actors as they were after its commits; of neither anything that users wrote, nor a secret.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element } from "../../http/formats/xml/index.ts"
import { actorView } from "../../http/resources/cluster/actor-views.ts"
import { momentOf, type RecordedCommits } from "../../http/resources/cluster/recording/moments.ts"
import { recordedTexts } from "../../http/resources/cluster/shown-fields.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Address, address, Overloaded, type RecordedCommit,
  type Tagged } from "../../runtime/index.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"
import { nodeOf } from "./quarantined-actor.ts"
import { eventually, registration, startSubscriber,
  type Subscriber } from "./registrations-harness.ts"

const basic = `admin:${adminToken}`

const messageOf = (fields: Readonly<Record<string, unknown>>): Tagged => ({ _tag: "Do", ...fields })

const shown = (kind: string, fields: Readonly<Record<string, unknown>>): unknown =>
  JSON.parse(recordedTexts.ofMessage(address(kind, "one"), messageOf(fields)))

describe("what a node records of a message", () => {
  it("has numbers, and the plain texts of the fields that are named", () => {
    const fields = { n: 3, isSigned: true, account: "ada", mailbox: "box", status: "waiting" }
    for (const kind of ["mailbox", "account", "session", "audit", "later"]) {
      expect(shown(kind, fields)).toEqual(fields)
    }
  })

  it("has no text of a user, and no secret, also of the kinds whose states are open", () => {
    const mark = "of-a-user"
    const secrets = {
      tokenHash: mark,
      keptHashes: [mark],
      passwordHash: mark,
      sealed: mark,
      webhookSecret: { secret: mark },
      text: mark,
      fragment: `<password>${mark}</password>`,
      operation: { target: `/mailboxes/box~${mark}`, detail: mark },
      network: mark,
      reader: { account: `box~${mark}/`, secretHash: mark },
      mailbox: `https://mail.example/mailboxes/box~${mark}`,
      kind: `<${mark}>`,
      to: [`https://name:${mark}@hooks.example/${mark}?token=${mark}`],
      [`<${mark}>`]: 1,
      aFieldOfLater: mark
    }
    for (const kind of ["mailbox", "account", "session", "audit", "readiness", "later"]) {
      for (const [name, value] of Object.entries(secrets)) {
        expect(JSON.stringify(shown(kind, { [name]: value }))).not.toContain(mark)
      }
    }
    expect(shown("mailbox", { to: secrets.to, tokenHash: mark })).toEqual({
      to: ["https://hooks.example, the rest of 62 characters not shown"],
      tokenHash: "not shown"
    })
  })

  it("has no bytes, no instance of a class, and never fails", () => {
    class Secret {
      readonly count = 1
    }
    const values = [new Uint8Array([104, 105]), Buffer.from("hi"), new Secret(), new Map(), 5n]
    for (const value of [...values, () => "hi"]) {
      expect(shown("content", { value })).toEqual({ value: "not shown" })
    }
    const circular: Record<string, unknown> = {}
    circular["self"] = circular
    expect(recordedTexts.ofMessage(address("content", "one"), messageOf(circular)))
      .toBe("not shown")
  })

  it("has of an outcome the name of the reply, or of the reason", () => {
    const { ofOutcome } = recordedTexts
    const detail = "words of a user"
    expect(ofOutcome(new Overloaded({ key: "a/b", retryAfterMs: 1 }), undefined))
      .toBe("Overloaded")
    expect(ofOutcome(undefined, { _tag: "Refused", reason: "Blocked", detail })).toBe("Blocked")
    expect(ofOutcome(undefined, { _tag: "Described", view: detail })).toBe("Described")
    for (const reply of [undefined, null, detail, { _tag: detail }, [detail], 7]) {
      expect(ofOutcome(undefined, reply)).toBeUndefined()
    }
  })
})

const commitOf = (seq: number, parts: Partial<RecordedCommit> = {}): RecordedCommit => ({
  seq,
  atMs: 1_700_000_000_000 + seq,
  messageSeq: 0,
  revision: seq,
  state: { text: `{"_tag":"Open","version":${seq},"title":"of-a-user"}`, chars: 40 },
  changesState: true,
  head: 0,
  appended: [],
  removed: [],
  timerMs: null,
  ...parts
})

const recordedOf = (...commits: ReadonlyArray<RecordedCommit>): RecordedCommits => ({
  address: address("mailbox", "one"),
  node: "a",
  startId: "a.start",
  sinceMs: 1_700_000_000_000,
  commits
})

describe("an actor after a commit", () => {
  it("is found by its name, and has its log unless the actor was removed since", () => {
    const removal = commitOf(3, { state: null })
    const recorded = recordedOf(commitOf(1), commitOf(2), removal, commitOf(4))
    expect(momentOf(recorded, "a.start.2")).toMatchObject({ at: 1, hasLog: false })
    expect(momentOf(recorded, "a.start.3")).toMatchObject({ at: 2, hasLog: true })
    expect(momentOf(recorded, "a.start.4")).toMatchObject({ at: 3, hasLog: true })
    for (const name of ["a.start.5", "b.start.2", "a.other.2", "2", ""]) {
      expect([name, momentOf(recorded, name)]).toEqual([name, undefined])
    }
  })

  it("says what it does not know, and what the commit has done", () => {
    const inspection = { head: 0, isLoaded: false, queued: 0, restarts: 0 }
    const pageOf = (commit: RecordedCommit, before = commitOf(1)): string => {
      const { body } = actorView(service.service, {
        address: address("mailbox", "one"),
        node: "a",
        inspection,
        log: [],
        recorded: recordedOf(before, commit),
        moment: { commit, at: 1, log: undefined }
      })
      return typeof body === "function" ? body().text : ""
    }
    const changed = pageOf(commitOf(2, { appended: [4, 5], head: 5, removed: [1] }))
    expect(changed).toContain(
      "wrote the state, 40 characters; appended 2 items, up to 5; removed 1 item of the log"
    )
    expect(changed).toContain("<mark>  &quot;version&quot;: 2,</mark>")
    expect(changed).not.toContain("of-a-user")
    expect(changed).toContain("It is not known: the actor was removed since, with its log.")
    const unknown = { state: undefined, changesState: false, timerMs: undefined }
    expect(pageOf(commitOf(2, unknown))).toContain(
      "It is not known: the commit that wrote it was not recorded."
    )
    expect(pageOf(commitOf(2, unknown))).toContain("changed timers only")
    expect(pageOf(commitOf(2, unknown))).toContain(
      "not known: the commit that set it was not recorded"
    )
    const long = { state: { text: undefined, chars: 70_000 } }
    expect(pageOf(commitOf(2, long))).toContain("Its 70000 characters were too many")
    const removal = pageOf(commitOf(2, { state: null }))
    expect(removal).toContain("removed the actor")
    expect(removal).toContain("It had no record.")
    const torn = { state: { text: "{\"title\":\"of-a-us", chars: 17 } }
    expect(pageOf(commitOf(2, torn))).toContain("Its record, of 17 characters, cannot be read.")
  })
})

let service: Harness
let subscriber: Subscriber
/** What users wrote, and secrets. */
const marks: Array<string> = []

/** What somebody has typed as the name of a mailbox, beside a key of the request. */
const besideKey = "typed-beside-a-key"

const mark = (name: string): string => {
  const text = `${name}-of-a-user-${marks.length}`
  marks.push(text)
  return text
}

const send: Harness["send"] = (...request) => service.send(...request)

/** The URL of the node that owns an actor, which records its commits. */
const nodeAt = (of: Address): string => {
  const at = service.services.indexOf(nodeOf(service, of))
  return service.nodes[at] ?? ""
}

/** Reads a path or a URI of the service at the node that owns an actor. */
const readAt = (of: Address, path: string, accept = "application/xml"): Promise<Answered> =>
  send("GET", nodeAt(of) + path.replace(service.base, ""), { basic, accept })

const box = address("mailbox", "box")
const boxPath = "/cluster/actors/mailbox/box"

const deposit = async (): Promise<void> => {
  const item = `<item><url>http://a.test/${mark("path")}</url>` +
    `<description>${mark("description")}</description><password>${mark("password")}</password>` +
    "</item>"
  const body = `<notification>${item}</notification>`
  expect((await send("POST", "/mailboxes/box", { body })).status).toBe(202)
}

/** Requests with texts and secrets of users, for actors of many kinds. */
const useService = async (): Promise<void> => {
  const account = await send("POST", "/accounts", {
    basic,
    body: "<account><name>ada</name></account>"
  })
  const token = account.child("token") ?? ""
  const title = `<mailbox><title>${mark("title")}</title></mailbox>`
  const opened = await send("POST", "/mailboxes", { basic, body: title, headers: { Slug: "box" } })
  const secret = /~([\w-]+)/.exec(opened.text)?.[1] ?? ""
  marks.push(token, secret, opened.child("password") ?? secret)
  await deposit()
  await deposit()
  expect((await send("GET", `/mailboxes/box~${secret}`)).status).toBe(200)
  expect((await send("GET", "/mailboxes/box", { basic: `ada:${token}` })).status).toBe(403)
  expect((await send("GET", "/mailboxes", { basic: `ada:${mark("token")}` })).status).toBe(401)
  // A secret as a name, by mistake.
  expect((await send("GET", "/mailboxes", { basic: `${mark("typed")}:none` })).status).toBe(401)
  expect((await send("GET", `/mailboxes/${mark("typed")}`)).status).toBeGreaterThan(400)
  // The key of a request has an actor of its own, which is called after the path, too.
  const keyed = { "Idempotency-Key": "0123456789abcdefghijklmnop" }
  const typed = await send("POST", `/mailboxes/${besideKey}`, { headers: keyed })
  expect(typed.status).toBeGreaterThan(400)
  const password = mark("message-password")
  const published = await send("POST", "/content", {
    body: mark("content"),
    type: "text/plain",
    headers: { "Message-Password": password }
  })
  const edit = /~([\w-]+)/.exec(`${published.header("link")} ${published.text}`)?.[1] ?? ""
  marks.push(edit)
  const href = published.header("location")
  expect((await send("GET", href, { headers: { "Message-Password": password } })).status).toBe(200)
  expect((await send("GET", href, { headers: { "Message-Password": mark("wrong") } })).status)
    .toBe(401)
  const callback = `${subscriber.at("echo")}/${mark("callback")}?token=${mark("query")}`
  const body = registration(callback)
  const registered = await send("POST", "/mailboxes/box/registrations", { basic, body })
  const registrationHref = registered.header("location")
  await eventually(
    () => send("GET", registrationHref, { basic }),
    ({ text }) => text.includes("status=\"active\"")
  )
  const session = await send("POST", "/sessions", { body: "<answer continue=\"true\"/>" })
  const name = `<answer>${mark("answer")}</answer>`
  expect((await send("PUT", `${session.header("location")}/name`, { body: name })).status)
    .toBeLessThan(300)
  // A mark of a few characters could be anywhere.
  for (const one of marks) expect(one.length).toBeGreaterThan(8)
}

beforeAll(async () => {
  subscriber = await startSubscriber()
  service = await startService(resourceTable, { inspector: true })
  await useService()
})
afterAll(async () => {
  await service.close()
  await subscriber.close()
})

const attributesOf = (element: Element, name: string) =>
  childrenOf(element, name).map(({ attributes }) => attributes)

const childElement = (element: Element, name: string): Element => {
  const child = childOf(element, name)
  if (child === undefined) throw new Error(`no ${name}`)
  return child
}

const expectHidden = (path: string, { text }: Answered, isSession = false): void => {
  // The answers of sessions are public, and their states are shown.
  const hidden = marks.filter((one) => !isSession || !one.startsWith("answer"))
  expect([path, hidden.filter((one) => text.includes(one))]).toEqual([path, []])
}

const types = ["application/xml", "application/json", "text/html", "text/plain"]

describe("/cluster/messages", () => {
  it("is for admins only, and in the audit log", async () => {
    const body = "<account><name>nobody</name></account>"
    const nobody = `nobody:${(await send("POST", "/accounts", { basic, body })).child("token")}`
    expect((await send("GET", "/cluster/messages")).status).toBe(401)
    expect((await send("GET", "/cluster/messages", { basic: nobody })).status).toBe(403)
    expect((await send("GET", "/cluster/messages?kind=mailbox", { basic })).status).toBe(200)
    const { xml } = await send("GET", "/audit?action=actor.inspect", { basic })
    expect(attributesOf(xml, "entry")).toContainEqual(
      expect.objectContaining({ target: "/cluster/messages", detail: "mailbox", account: "admin" })
    )
  })

  it("has the messages of the node with their outcomes, those to one kind if asked", async () => {
    const { xml } = await readAt(box, "/cluster/messages?kind=mailbox")
    const node = nodeOf(service, box).startId.split(".")[0]
    expect(xml.attributes).toMatchObject({ kind: "mailbox", node, recording: "on" })
    const messages = attributesOf(xml, "message")
    expect(new Set(messages.map(({ kind }) => kind))).toEqual(new Set(["mailbox"]))
    expect(messages.map(({ n }) => Number(n)))
      .toEqual(messages.map(({ n }) => Number(n)).toSorted((a, b) => b - a))
    expect(messages).toContainEqual(expect.objectContaining({
      href: service.base + boxPath,
      id: "box",
      name: "Deposit",
      outcome: "replied",
      "took-ms": expect.stringMatching(/^\d+$/)
    }))
    expect(messages).toContainEqual(expect.objectContaining({ outcome: "refused" }))
    const json = await readAt(box, "/cluster/messages?kind=mailbox", "application/json")
    expect(JSON.parse(json.text)).toMatchObject({ kind: "mailbox", recording: "on" })
    const page = await readAt(box, "/cluster/messages?kind=mailbox", "text/html")
    expect(page.text).toContain("<b aria-current=\"page\">mailbox</b>")
    expect(page.text).toContain("<a href=\"/cluster/messages\">all</a>")
    expect(page.text).toContain(`<a href="${boxPath}">mailbox/box</a> · <b>Deposit</b>`)
    const cluster = await send("GET", "/cluster", { basic, accept: "text/html" })
    expect(cluster.text).toContain("href=\"/cluster/messages\"")
  })

  it("refuses a kind that there is not", async () => {
    for (const kind of ["nothing", "", "__proto__", "%3Cb%3E"]) {
      const refused = await send("GET", `/cluster/messages?kind=${kind}`, { basic })
      expect([kind, refused.status]).toEqual([kind, 400])
    }
  })

  it("has nothing that users wrote and no secret, nor has the memory of the node", async () => {
    for (const node of service.nodes) {
      for (const accept of types) {
        const path = `${node}/cluster/messages`
        const page = await send("GET", path, { basic, accept })
        expectHidden(path, page)
        expect(page.text).not.toContain(besideKey)
      }
    }
    const kept = service.services.flatMap(({ recorder }) => recorder?.messagesOf({}, 1_000) ?? [])
    expect(kept.length).toBeGreaterThan(20)
    const text = JSON.stringify(kept.map(({ content, result, tag }) => [content, result, tag]))
    expect(marks.filter((one) => text.includes(one))).toEqual([])
    expect(new Set(kept.map(({ kind }) => kind)).size).toBeGreaterThan(6)
    expect(kept.filter(({ id }) => id.startsWith("typed")).map(({ kind }) => kind))
      .toEqual(expect.arrayContaining(["account", "mailbox"]))
  })
})

describe("the recent commits of an actor", () => {
  const commitsOf = async (of: Address) => {
    const { xml } = await readAt(of, `/cluster/actors/${of.kind}/${of.id}`)
    return attributesOf(childElement(xml, "commits"), "commit")
  }

  it("are on its page, with what they changed", async () => {
    const commits = await commitsOf(box)
    expect(commits.length).toBeGreaterThan(2)
    expect(commits.at(-1)).toMatchObject({ state: "written", head: "0" })
    expect(commits).toContainEqual(expect.objectContaining({ appended: "1", head: "2" }))
    const page = await readAt(box, boxPath, "text/html")
    expect(page.text).toContain("<h2>Commits</h2>")
    expect(page.text).toContain("appended 1 item, up to 2")
    expect(page.text).toContain(`>After commit ${commits.length}</a>`)
    for (const { href = "" } of commits) {
      const path = href.replace(service.base, "").replaceAll("&", "&amp;")
      expect(page.text).toContain(`href="${path}"`)
    }
  })

  it("lead to the actor as it was, and from one to the next", async () => {
    const commits = (await commitsOf(box)).toReversed()
    const first = commits[0]?.["href"] ?? ""
    const { xml } = await readAt(box, first)
    const past = childElement(xml, "past")
    expect(past.attributes).toMatchObject({
      commit: commits[0]?.["name"],
      at: commits[0]?.["at"],
      head: "0",
      next: commits[1]?.["href"],
      "log-known": "true"
    })
    expect(past.attributes).not.toHaveProperty("previous")
    expect(childOf(past, "items")).toBeUndefined()
    const state = childOf(past, "state")?.children.join("") ?? ""
    expect(JSON.parse(state)).toMatchObject({ _tag: "Open", passwordHash: "not shown" })
    // How it is now is in the same document.
    expect(xml.attributes).toMatchObject({ kind: "mailbox", id: "box", loaded: "true" })
    const withItem = commits.find(({ head }) => head === "1")?.["href"] ?? ""
    const second = childElement((await readAt(box, withItem)).xml, "past")
    expect(attributesOf(childElement(second, "items"), "item")).toEqual([{ n: "1" }])
    const page = await readAt(box, withItem, "text/html")
    expect(page.text).toContain("mailbox/box, as it was")
    for (const rel of ["prev", "next", "latest-version"]) {
      expect(page.text).toMatch(new RegExp(`<li><a href="[^"]+" rel="${rel}">`))
    }
    const json = await readAt(box, withItem, "application/json")
    expect(JSON.parse(json.text)).toMatchObject({ past: { head: "1" } })
    const { text } = await send("GET", "/audit?action=actor.inspect", { basic })
    expect(text).toContain("as it was after commit")
  })

  it("show nothing that users wrote and no secret, of any actor", async () => {
    const actors = new Map<string, Address>()
    for (const { recorder } of service.services) {
      for (const { id, kind } of recorder?.messagesOf({}, 1_000) ?? []) {
        if (kind !== "audit") actors.set(`${kind}/${id}`, address(kind, id))
      }
    }
    const seen = new Set<string>()
    for (const [key, of] of actors) {
      const path = `/cluster/actors/${key}`
      const isSession = of.kind === "session"
      const answered = await readAt(of, path)
      if (answered.status === 404) continue
      expectHidden(path, answered, isSession)
      const commits = attributesOf(childElement(answered.xml, "commits"), "commit")
      for (const { href = "" } of [...commits.slice(0, 1), ...commits.slice(-1)]) {
        for (const accept of ["application/xml", "text/html"]) {
          const past = await readAt(of, href, accept)
          expect([href, past.status]).toEqual([href, 200])
          expectHidden(href, past, isSession)
        }
        seen.add(of.kind)
      }
    }
    expect([...seen]).toEqual(expect.arrayContaining(["account", "content", "mailbox", "session"]))
  })

  it("are of this start of this node: other names are refused", async () => {
    for (const name of ["", "1", "a.1", "node-0.test.0", "node-0.test.x", "a/b.test.1"]) {
      const refused = await readAt(box, `${boxPath}?commit=${encodeURIComponent(name)}`)
      expect([name, refused.status]).toEqual([name, 400])
    }
    const { startId } = nodeOf(service, box)
    const gone = await readAt(box, `${boxPath}?commit=${startId}.999999`)
    expect(gone.status).toBe(404)
    expect(gone.child("detail")).toContain("has not recorded this commit since its start")
    const [node] = startId.split(".")
    const earlier = await readAt(box, `${boxPath}?commit=${node}.earlier.1`)
    expect(earlier.child("detail")).toContain("has not recorded this commit since its start")
    const other = await readAt(box, `${boxPath}?commit=another.test.1`)
    expect(other.status).toBe(404)
    expect(other.child("detail")).toContain("the node another may have recorded this commit")
    expect((await send("GET", `${boxPath}?commit=${startId}.1`)).status).toBe(401)
  })
})
