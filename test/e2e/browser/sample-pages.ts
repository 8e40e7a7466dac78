/** Fills a service with one resource of each kind, so that every page has content. */
import { type Answer, asAdmin, childOf, expectStatus, openMailbox, parseXml, postXml,
  send } from "../client.ts"
import { eventually } from "../process.ts"
import { echoes, receiver } from "../receivers.ts"

const statusWithinMs = 120_000

/** A page to test: its name, its path, and its status. */
export interface SamplePage {
  readonly name: string
  readonly path: string
  readonly status: number
}

const samplePage = (name: string, path: string, status = 200): SamplePage => ({
  name,
  path,
  status
})

/** Path and query of a URI of the service. */
const pathOf = (uri: string | null): string => {
  const { pathname, search } = new URL(uri ?? "", "http://here.test")
  return pathname + search
}

const made = (answer: Answer): string =>
  pathOf(expectStatus(answer, 201, 202).headers.get("location"))

const item = (about: string, url: string, more = ""): string =>
  `<item><description>${about}</description><url>${url}</url>${more}</item>`

/** A mailbox with messages, an empty mailbox, and the page of a notification. */
const mailboxes = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const alice = await openMailbox(base, "alice")
  const path = pathOf(alice.path)
  await openMailbox(base, "bob")
  const headers = { "content-type": "text/plain" }
  const text = "The boiler\nIt makes a noise at night, like a train that never arrives."
  expectStatus(await send(base, path, { method: "POST", headers, body: text }), 202)
  const deposited: Array<Answer> = []
  for (const about of ["The keys", "A parcel that is too large for the letter box", "Rent"]) {
    const from = "<from>http://peer.test/outgoing/landlady</from><password>mellon</password>"
    const more = about === "Rent" ? from : ""
    const url = `${base}/problems?${encodeURIComponent(about)}`
    const document = `<notification>${item(about, url, more)}</notification>`
    deposited.push(expectStatus(await postXml(base, path, document), 202))
  }
  const [first] = deposited
  return [
    samplePage("mailboxes", "/mailboxes"),
    samplePage("mailbox", path),
    samplePage("mailbox-empty", "/mailboxes/bob"),
    samplePage("mailbox-shared", pathOf(alice.shared)),
    samplePage("notification", pathOf(first?.headers.get("location") ?? null))
  ]
}

/** A notification to three recipients, each with another status. */
const outgoing = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const busy = await receiver((_, response) => void response.writeHead(503).end())
  const gone = await receiver((_, response) => void response.writeHead(410).end())
  const to = [`${base}/mailboxes/alice`, `${busy}/inbox`, `${gone}/${"a-long-path/".repeat(8)}`]
  const document = `<notification>${to.map((one) => `<to>${one}</to>`).join("")}${
    item("The gas meter is read tomorrow", `${base}/problems`)
  }</notification>`
  const path = made(await postXml(base, "/outgoing/admin", document, asAdmin))
  await eventually(statusWithinMs, "each recipient has another status", async () => {
    const { text } = await send(base, path, { headers: asAdmin })
    const actual = parseXml(text).children.map(({ attributes }) => attributes["status"])
    return ["success", "retry", "failed"].every((one) => actual.includes(one)) ? true : undefined
  }, 100)
  return [
    samplePage("outgoing", "/outgoing/admin"),
    samplePage("pauses", "/outgoing/admin/pauses"),
    samplePage("sent", path),
    samplePage("sent-attempts", `${path}/attempts`)
  ]
}

/** A verified callback, and one that does not answer the challenge. */
const registrations = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const origin = await receiver((received, response) => {
    if (!echoes(received, response)) response.writeHead(204).end()
  })
  const silent = await receiver((_, response) => void response.writeHead(404).end())
  const register = async (callback: string): Promise<string> => {
    const document = `<registration><callback>${callback}</callback></registration>`
    return made(await postXml(base, "/mailboxes/alice/registrations", document, asAdmin))
  }
  const active = await register(`${origin}/hook`)
  await register(`${silent}/hook`)
  return [
    samplePage("registrations", "/mailboxes/alice/registrations"),
    samplePage("registration", active),
    samplePage("attempts", `${active}/attempts`)
  ]
}

const cabinets = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const document = `<cabinet><title>All the post</title>${
    ["alice", "bob"].map((name) => `<mailbox href="${base}/mailboxes/${name}"/>`).join("")
  }</cabinet>`
  const path = made(await postXml(base, "/cabinets", document, asAdmin))
  return [samplePage("cabinets", "/cabinets"), samplePage("cabinet", path)]
}

/** A session at its first question, and one with an answer. */
const sessions = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const begun = made(await postXml(base, "/sessions", "<answer continue=\"true\"/>"))

  const body = "<answer continue=\"true\">Sir Robin of Camelot</answer>"
  const headers = { "content-type": "application/xml" }
  const name = await send(base, `${begun}/name`, { method: "PUT", headers, body })
  expectStatus(name, 200, 201, 303)
  return [
    samplePage("bridge", "/cross_bridge"),
    samplePage("sessions", "/sessions"),
    samplePage("session", begun),
    samplePage("answer", `${begun}/name`),
    samplePage("questions", "/questions/quest_question?name=Sir%20Robin")
  ]
}

const names = ["Ada Lovelace", "Ben Bitdiddle", "Cy D. Fect", "Dame Shirley", "Emmy Noether"]

/** Quotes, customers for two pages, and a query. */
const rows = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const put = async (path: string, type: string, body: string): Promise<void> => {
    const headers = { ...asAdmin, "content-type": type }
    expectStatus(await send(base, path, { method: "PUT", headers, body }), 200, 201)
  }
  const xml = "application/xml"
  await put(
    "/quotes/ACME",
    xml,
    "<quote><price currency=\"USD\">12.50</price><name>Acme</name></quote>"
  )
  await put("/quotes/NORD", xml, "<quote><price currency=\"NOK\">1203.0075</price></quote>")
  const table = names.map((name, at) => `c${at},${name},${18 + 9 * at}`)
  await put("/customers", "text/csv", `id,name,age\n${table.join("\n")}\n`)
  const document = `<query on="customers"><title>Of age</title><all>
<where field="age" op="ge" value="21"/><where field="name" op="contains" value="e"/></all></query>`
  const answer = await postXml(base, "/queries", document, asAdmin)
  const query = made(answer)
  return [
    samplePage("quotes", "/quotes"),
    samplePage("quote", "/quotes/ACME"),
    samplePage("customers", "/customers?agemin=21&return=name+age&limit=2"),
    samplePage("customer", "/customers/c1"),
    samplePage("queries", "/queries"),
    samplePage("query", query),
    samplePage("query-result", `/customers?query=${encodeURIComponent(query)}`)
  ]
}

const accounts = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const document = "<account><name>carla</name><role>quotes</role></account>"
  const created = expectStatus(await postXml(base, "/accounts", document, asAdmin), 201)
  expectStatus(created, 201)
  if (childOf(parseXml(created.text), "name").text !== "carla") throw new Error("another account")
  return [
    samplePage("accounts", "/accounts"),
    samplePage("account", "/accounts/carla")
  ]
}

/** Fills the service at `base`; returns every kind of page, as an admin sees it. */
export const createSamplePages = async (base: string): Promise<ReadonlyArray<SamplePage>> => [
  samplePage("home", "/"),
  ...await mailboxes(base),
  ...await outgoing(base),
  ...await registrations(base),
  ...await cabinets(base),
  ...await sessions(base),
  ...await rows(base),
  ...await accounts(base),
  samplePage("administration", "/admin"),
  samplePage("cluster", "/cluster"),
  samplePage("history", "/cluster/history"),
  samplePage("actors", "/cluster/actors/mailbox"),
  samplePage("actor", "/cluster/actors/mailbox/alice"),
  samplePage("limits", "/limits"),
  samplePage("settings", "/settings"),
  samplePage("problems", "/problems"),
  samplePage("docs", "/docs"),
  samplePage("docs-concepts", "/docs/concepts"),
  samplePage("docs-recipes", "/docs/how-to/recipes"),
  samplePage("docs-settings", "/docs/reference/settings"),
  samplePage("docs-search", "/docs?q=push+registration"),
  samplePage("docs-search-empty", "/docs?q=xyzzy"),
  samplePage("docs-api", "/docs/api"),
  samplePage("docs-api-registrations", "/docs/api/registrations"),
  samplePage("not-found", "/nothing/here", 404),
  samplePage("malformed", "/customers?agemin=old", 400)
]
